-- Gives the lock back but keeps it locked for a while, without an owner: its only field is
-- then <owner>:kept, so that nothing this owner has sent before can extend or free it. Nobody is
-- notified: the reply to a denied request says when it ends.
--
-- KEYS[1]  the lock
-- ARGV[1]  owner
-- ARGV[2]  how long it stays locked, milliseconds
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
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
