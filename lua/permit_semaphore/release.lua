-- Gives back permits, except those that are no longer held. Idempotent.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..]  the ids
--
-- reply    1 + how many clients received the message: all were held and are given back
--          -1 not all were held; those that were are given back

--@include permits/available
--@include permits/raw
local removed = 0
for i = 2, #ARGV do
  removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))
end
local publish, channel, places, wants = ARGV[1], KEYS[3], KEYS[4], KEYS[5]
local woken = 0
if available and removed > 0 then
  available = redis.call('INCRBY', KEYS[1], removed)
  --@include permit_places/tell
  woken = listeners
end
if removed < #ARGV - 1 then
  return -1
end
return 1 + woken
