-- Releases the write lock, regardless of its hold count. A writer that also reads stays a
-- reader: other readers are woken then, too, and the lock lives as long as the writer's
-- reads.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to wake nobody
--
-- reply    1 + how many clients were listening: released
--          0 the lock is free, -1 another owner holds it

if redis.call('HDEL', KEYS[1], ARGV[1] .. ':write') == 0 then
  return -redis.call('EXISTS', KEYS[1])
end
--@include readers/longest_read
local longest = longest_read(KEYS[3])
if longest == 0 then
  redis.call('DEL', KEYS[1], KEYS[4])
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
  if longest then
    redis.call('PEXPIRE', KEYS[1], longest)
    redis.call('PEXPIRE', KEYS[4], longest)
  end
end
if ARGV[2] == '' then
  return 1
end
-- pcall: a message is a hint; a user without permission to publish has still released
local listeners = redis.pcall(ARGV[2], KEYS[2], '1')
return type(listeners) == 'number' and 1 + listeners or 1
