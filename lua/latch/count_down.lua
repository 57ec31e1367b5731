-- Counts down by one; at zero the latch is removed and its waiters are woken. Not
-- idempotent: sent twice it counts twice.
--
-- KEYS[1]  the count
-- KEYS[2]  the channel
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2]  the server time until which this may take effect, epoch milliseconds
--
-- reply    the count that is left; 0 also if there was none

--@include deadline
--@include permits/available
if not available then
  return 0
end
local left = redis.call('INCRBY', KEYS[1], -1)
if left > 0 then
  return left
end
redis.call('DEL', KEYS[1])
if left == 0 then
  -- 0 tells waiters to go on
  redis.pcall(ARGV[1], KEYS[2], '0')
end
return 0
