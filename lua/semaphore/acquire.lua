-- Takes permits, all or none, and remembers the grant under a marker of its own, so that
-- exactly this grant can be taken back. Idempotent: sent twice for one marker it takes once.
--
-- KEYS[1]  the permits that are free, a string (Redisson's RSemaphore)
-- KEYS[2]  the ids of a permit semaphore of this name
-- KEYS[3]  the marker of this grant, a string: its permits
-- KEYS[4]  the channel
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it
-- ARGV[2]  how many permits
-- ARGV[3]  how long the marker lives, milliseconds
-- ARGV[4]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[5]  the server time until which this may take effect, epoch milliseconds
--
-- reply    { 1 granted or 0 denied, how many permits are free now, 1 or 0: whether the
--          semaphore exists }

--@include deadline
--@include permits/anonymous
local marker = redis.call('GET', KEYS[3])
local granted = marker and 1 or 0
--@include permits/begin
if not marker and available and available >= tonumber(ARGV[2]) then
  granted = 1
  -- the marker first: if the script gets no further, it does no harm
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
  available = redis.call('INCRBY', KEYS[1], -ARGV[2])
end
if created and available > 0 then
  -- pcall: a message is a hint
  redis.pcall(ARGV[4], KEYS[4], available)
end
return { granted, available or 0, available and 1 or 0 }
