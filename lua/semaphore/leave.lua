-- Gives up the place of a client that no longer waits for permits, with ids or without. If
-- permits are free, others are told: they may have been kept for it. Idempotent.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the channel
-- KEYS[3], KEYS[4]  the places, and what they want (see include/permit_places/place_at.lua)
-- ARGV[1]  the client
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 it had a place, 0 it had none

local publish, channel, places, wants = ARGV[2], KEYS[2], KEYS[3], KEYS[4]
--@include permit_places/remove
local removed = remove(ARGV[1])
-- pcall: something else may be under this name by now
local available = tonumber(redis.pcall('GET', KEYS[1]))
if removed == 1 and available then
  --@include permit_places/tell
end
return removed
