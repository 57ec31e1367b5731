-- Removes a latch and releases its waiters.
--
-- KEYS[1]  the count
-- KEYS[2]  the channel
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 removed, 0 there was none

--@include deadline
--@include permits/available
if not available then
  return 0
end
redis.call('DEL', KEYS[1])
-- Redisson sends 1, on which its waiters close their gate; 0 opens it, and they look again
redis.pcall(ARGV[1], KEYS[2], '1')
redis.pcall(ARGV[1], KEYS[2], '0')
return 1
