-- Creates a semaphore with a number of permits.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids of a permit semaphore of this name
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  how many permits
-- ARGV[2]  how long the semaphore lives, milliseconds; 0 without limit
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[4]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 created, 0 it exists already

--@include deadline
--@include permits/anonymous
--@include permits/available
if available then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
if ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
available = tonumber(ARGV[1])
local publish, channel, places, wants = ARGV[3], KEYS[3], KEYS[4], KEYS[5]
--@include permit_places/tell
return 1
