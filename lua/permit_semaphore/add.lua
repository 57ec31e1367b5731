-- Adds permits, or takes some away for good, however many are free. An expiry of the
-- counter stays as it is. Not idempotent: sent twice it counts twice.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  how many permits the semaphore begins with, or '' for none
-- ARGV[2]  how many permits; negative to take away
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[4]  the server time until which this may take effect, epoch milliseconds
--
-- reply    how many are free now

--@include deadline
--@include permits/begin_leased
available = redis.call('INCRBY', KEYS[1], ARGV[2])
local publish, channel, places, wants = ARGV[3], KEYS[3], KEYS[4], KEYS[5]
--@include permit_places/tell
return available
