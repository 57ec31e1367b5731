-- Gives back permits, all of them or none.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..]  the ids
--
-- reply    how many were given back: as many as there are ids, or 0 because not all are
--          held (unknown, given back already, or their lease has ended)

local time = redis.call('TIME')
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
local publish, channel, places, wants = ARGV[1], KEYS[3], KEYS[4], KEYS[5]
if reaped + removed > 0 and available then
  --@include permit_places/tell
end
return removed
