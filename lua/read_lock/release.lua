-- Gives back all holds of a reader. Owner ids are used once, so it may run late, or twice.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to wake nobody
--
-- reply    released: 1 + how many clients were listening if the lock is free now, else 1
--          0 the lock is free, -1 it is held, but not by this reader

local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not held then
  return -redis.call('EXISTS', KEYS[1])
end
-- first, as a full server (OOM) allows all writes of a script once it has removed something
for number = 1, held do
  redis.call('DEL', KEYS[3] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. number)
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
local publish = ARGV[2]
--@include readers/end_read
