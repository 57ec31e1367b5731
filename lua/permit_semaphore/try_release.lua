-- Gives back permits, all of them or none.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..]  the ids
--
-- reply    how many were given back: as many as there are ids, or 0 because not all are
--          held (unknown, given back already, or their lease has ended)

--@include permits/reap
--@include permits/raw
local held = true
for i = 2, #ARGV do
  held = held and tonumber(redis.call('ZSCORE', KEYS[2], raw(ARGV[i])) or 0) > now
end
local removed = 0
if held then
  for i = 2, #ARGV do
    removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))
  end
  if available then
    available = redis.call('INCRBY', KEYS[1], removed)
  end
end
if reaped + removed > 0 and available and available > 0 then
  redis.pcall(ARGV[1], KEYS[3], available)
end
return removed
