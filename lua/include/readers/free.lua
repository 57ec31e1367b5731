-- Frees a read-write lock of all its holders. If they are more than a thousand, the holds of readers are left to expire, as
-- Redisson leaves all of them.
--
-- KEYS[1]  the lock
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset

local fields = redis.call('HLEN', KEYS[1]) <= 1000 and redis.call('HGETALL', KEYS[1]) or {}
for i = 1, #fields, 2 do
  for number = 1, tonumber(fields[i + 1]) or 0 do
    redis.call('DEL', KEYS[3] .. ':' .. fields[i] .. ':rwlock_timeout:' .. number)
  end
end
redis.call('DEL', KEYS[1], KEYS[4])
