-- Frees the lock of its readers, or of some of them, unless there is a writer.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..] the readers from which to take it; none to take it from all
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    1 it was held, 0 by no reader, or by others

--@include deadline
--@include readers/mode
if mode ~= 'read' then
  return 0
end
local taken = 0
for i = 2, #ARGV - 1 do
  local held = tonumber(redis.call('HGET', KEYS[1], ARGV[i]))
  for number = 1, held or 0 do
    redis.call('DEL', KEYS[3] .. ':' .. ARGV[i] .. ':rwlock_timeout:' .. number)
  end
  if held then
    taken = taken + redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[4], ARGV[i])
  end
end
if taken > 0 then
  --@include readers/end_read
elseif #ARGV > 2 then
  return 0
end
--@include readers/free
redis.pcall(ARGV[1], KEYS[2], '0')
return 1
