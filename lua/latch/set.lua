-- Sets the count of a latch that has none.
--
-- KEYS[1]  the count, a string (Redisson's RCountDownLatch)
-- KEYS[2]  the channel
-- ARGV[1]  the count
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[3]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 set, 0 there is a count already

--@include deadline
--@include permits/available
if available then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
-- 1 tells waiters to wait
redis.pcall(ARGV[2], KEYS[2], '1')
return 1
