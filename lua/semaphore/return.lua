-- Gives back the permits of one grant, once, and tells how many are free. Idempotent:
-- only the call that deletes the marker gives back. If the counter is gone, so are the
-- permits.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the marker of the grant, a string: its permits
-- KEYS[3]  the channel
-- ARGV[1]  how many permits
-- ARGV[2]  1 when the grant is older than its marker lives: give back without it
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 given back, 0 the grant is not known

--@include available
if redis.call('DEL', KEYS[2]) == 0 and ARGV[2] ~= '1' then
  return 0
end
if not available then
  return 0
end
available = redis.call('INCRBY', KEYS[1], ARGV[1])
if available > 0 then
  redis.pcall(ARGV[3], KEYS[3], available)
end
return 1
