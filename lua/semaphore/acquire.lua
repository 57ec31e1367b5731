-- Takes permits, all or none, and remembers the grant under a marker of its own, so that
-- it can be taken back exactly. Idempotent: sent twice for the same marker it takes once.
--
-- KEYS[1]  the permits that are free, a string (Redisson's RSemaphore)
-- KEYS[2]  the ids of a permit semaphore of this name
-- KEYS[3]  the marker of this grant, a string
-- KEYS[4]  the channel
-- ARGV[1]  how many permits
-- ARGV[2]  how long the marker lives, milliseconds
-- ARGV[3]  how many permits the semaphore begins with, or '' not to create it
-- ARGV[4]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
--
-- reply    { 1 granted or 0 denied, how many permits are free now }

--@include anonymous
--@include available
if redis.call('EXISTS', KEYS[3]) == 1 then
  return { 1, available or 0 }
end
local created = not available and ARGV[3] ~= ''
if created then
  redis.call('SET', KEYS[1], ARGV[3])
  available = tonumber(ARGV[3])
end
local granted = 0
if available and available >= tonumber(ARGV[1]) then
  granted = 1
  available = redis.call('DECRBY', KEYS[1], ARGV[1])
  redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
end
if created and available > 0 then
  -- pcall: a message is a hint
  redis.pcall(ARGV[4], KEYS[4], available)
end
return { granted, available or 0 }
