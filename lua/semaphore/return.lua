-- Gives back the permits of one grant, once, and publishes how many are free. Idempotent:
-- only the call that deletes the marker gives back; or, on trust, the first call, which
-- leaves a note. If the counter is gone, so are the permits.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the marker of the grant, a string: its permits
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5]  the places, and what they want (see include/permit_places/place_at.lua);
--          left out by a client that takes no places
-- ARGV[1]  how many permits
-- ARGV[2]  0; or, for a grant that has outlived its marker and is given back on trust, how
--          long the note of that is kept, milliseconds
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 given back, 0 the grant is not known

--@include permits/available
if ARGV[2] == '0' then
  if redis.call('DEL', KEYS[2]) == 0 then
    return 0
  end
else
  local before = redis.call('GET', KEYS[2])
  -- a full server (OOM) allows all writes of a script once it has removed something
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[2], 'returned', 'PX', ARGV[2])
  if before == 'returned' then
    return 1
  end
end
if not available then
  return 0
end
available = redis.call('INCRBY', KEYS[1], ARGV[1])
local publish, channel, places, wants = ARGV[3], KEYS[3], KEYS[4], KEYS[5]
--@include permit_places/tell
return 1
