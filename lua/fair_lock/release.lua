-- Releases an owner's lock, regardless of its hold count, or removes its place in the
-- queue. If the lock is then free, hands it over to the head of the queue, or wakes it.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each waiter subscribes to its own: <channel>:<owner>
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive; owner = its secret }, a zset
-- KEYS[6]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[3]  the lease of the head that it is handed over to, milliseconds
-- ARGV[4]  how long that owner's token is remembered, milliseconds
-- ARGV[5]  Redisson's fairLockWaitTimeout, milliseconds
--
-- reply    1 + how many clients were woken to ask: released
--          0 the lock is free, -1 another owner holds it

--@include digits
local released = redis.call('HDEL', KEYS[1], ARGV[1])
--@include fair/leave_queue
--@include fair/give_up
local left
if released == 1 then
  left = leave_queue(ARGV[1])
else
  left = give_up(ARGV[1])
end
--@include fair/skip_the_dead
--@include fair/keep_front
if not head then
  redis.call('DEL', KEYS[4], KEYS[5])
elseif left then
  keep_front(0)
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return released == 1 and 1 or -1
end
if not head then
  return released
end
--@include fair/hand_over
return released == 1 and 1 + listeners or 0
