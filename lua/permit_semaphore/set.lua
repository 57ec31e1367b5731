-- Creates a semaphore with a number of permits, or gives an existing one this number in
-- total, free and held.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  how many permits
-- ARGV[2]  1 to change a semaphore that exists
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[4]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 created or changed, 0 left as it was

--@include deadline
--@include permits/available
if available and ARGV[2] ~= '1' then
  return 0
end
-- held permits count even without a counter, in case only the counter has been removed
local change = ARGV[1] - (available or 0) - redis.call('ZCARD', KEYS[2])
if available and change == 0 then
  return 0
end
available = redis.call('INCRBY', KEYS[1], change)
local publish, channel, places, wants = ARGV[3], KEYS[3], KEYS[4], KEYS[5]
--@include permit_places/tell
return 1
