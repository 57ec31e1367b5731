-- Gives back the permits of one grant, once, and tells how many are free. Idempotent:
-- whoever deletes the marker gives back. Where the counter is gone, so are the permits.
-- A grant that is not known will not be made, if asked for: should its acquisition arrive
-- late, after it was undone, nobody would give back what it takes.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the marker of the grant: its permits, or 0 when it will not be made
-- KEYS[3]  the channel
-- ARGV[1]  how many permits
-- ARGV[2]  1 when the grant is older than its marker lives: give back without it
-- ARGV[3]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
-- ARGV[4]  how long a grant that is not known will not be made, milliseconds; or 0
--
-- reply    1 given back, 0 the grant is not known

--@include available
local granted = redis.call('GET', KEYS[2])
if (not granted or granted == '0') and ARGV[2] ~= '1' then
  if ARGV[4] ~= '0' then
    redis.call('SET', KEYS[2], 0, 'PX', ARGV[4])
  end
  return 0
end
redis.call('DEL', KEYS[2])
if not available then
  return 0
end
available = redis.call('INCRBY', KEYS[1], ARGV[1])
if available > 0 then
  redis.pcall(ARGV[3], KEYS[3], available)
end
return 1
