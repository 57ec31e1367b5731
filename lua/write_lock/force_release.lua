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
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')
end
--@include held_by
if mode ~= 'write' or not held_by(':write') then
  return 0
end
-- with more readers, the holds are left to expire, as Redisson leaves all of them
local fields = redis.call('HLEN', KEYS[1]) <= 1000 and redis.call('HGETALL', KEYS[1]) or {}
for i = 1, #fields, 2 do
  for number = 1, tonumber(fields[i + 1]) or 0 do
    redis.call('DEL', KEYS[3] .. ':' .. fields[i] .. ':rwlock_timeout:' .. number)
  end
end
redis.call('DEL', KEYS[1], KEYS[4])
redis.pcall(ARGV[1], KEYS[2], '1')
return 1
