-- Gives the lock back but keeps it locked for a while, without an owner: its only field is
-- then <owner>:kept, so that nothing this owner has sent before can extend or free it. Releasing
-- <owner>:kept hands the lock over; if nobody does, it frees itself. Wakes one waiter of every
-- client, or the head of a queue: the reply to its request says when that is at the latest.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the queue of a fair lock; left out for any other
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[3]  how long it stays locked, milliseconds
--
-- reply    1 released, also if it was before; 0 the lock is free, -1 another owner holds it

local kept = ARGV[1] .. ':kept'
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  if redis.call('HEXISTS', KEYS[1], kept) == 1 then
    return 1
  end
  return -redis.call('EXISTS', KEYS[1])
end
redis.call('HSET', KEYS[1], kept, '1')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local head = KEYS[3] and redis.call('LINDEX', KEYS[3], 0)
if head or not KEYS[3] then
  -- pcall: a message is a hint; a user without permission to publish has still released
  redis.pcall(ARGV[2], head and KEYS[2] .. ':' .. head or KEYS[2], '0')
end
return 1
