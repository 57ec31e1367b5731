-- Frees the lock of its writer, with the shares that it holds as a reader.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..] the owners from which to take it; none to take it from any
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    1 it was held, 0 by no writer, or by others

--@include deadline
--@include readers/mode
--@include held_by
if mode ~= 'write' or not held_by(':write') then
  return 0
end
--@include readers/free
redis.pcall(ARGV[1], KEYS[2], '1')
return 1
