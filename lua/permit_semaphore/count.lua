-- Counts the permits; those whose lease has ended count as free.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    { free (nil: there is no semaphore), held }

local time = redis.call('TIME')
--@include permits/reap
local publish, channel, places, wants = ARGV[1], KEYS[3], KEYS[4], KEYS[5]
if reaped > 0 and available then
  --@include permit_places/tell
end
return { available and available + ended, redis.call('ZCARD', KEYS[2]) - ended }
