-- Gives back permits, except those that are no longer held. Idempotent.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..]  the ids
--
-- reply    1 + how many clients were listening: all were held and are given back
--          -1 not all were held; those that were are given back

--@include permits/available
--@include permits/raw
local removed = 0
for i = 2, #ARGV do
  removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))
end
local listeners
if available and removed > 0 then
  available = redis.call('INCRBY', KEYS[1], removed)
  listeners = available > 0 and redis.pcall(ARGV[1], KEYS[3], available)
end
if removed < #ARGV - 1 then
  return -1
end
return type(listeners) == 'number' and 1 + listeners or 1
