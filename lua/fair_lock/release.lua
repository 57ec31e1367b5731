-- Releases an owner's lock, regardless of its hold count, or removes its place in the
-- queue. If the lock is then free, wakes the head of the queue.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each waiter subscribes to its own: <channel>:<owner>
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive }, a zset
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 + how many clients received the message: released
--          0 the lock is free, -1 another owner holds it

local released = redis.call('HDEL', KEYS[1], ARGV[1])
--@include fair/leave_queue
local left = leave_queue(ARGV[1])
--@include fair/skip_the_dead
if left and head then
  --@include fair/keep_front
  keep_front(0)
end
if not head then
  redis.call('DEL', KEYS[4], KEYS[5])
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return released == 1 and 1 or -1
end
-- pcall: a message is a hint; a user without permission to publish has still released
local listeners = head and redis.pcall(ARGV[2], KEYS[2] .. ':' .. head, '0')
if released == 0 then
  return 0
end
return type(listeners) == 'number' and 1 + listeners or 1
