-- After a read has ended: keeps the lock for as long as the longest hold that is left, and
-- replies 1; or frees it and goes on. Readers whose holds have all run out do not keep it. A
-- writer's lease is never changed.
--
-- KEYS[1]  the lock
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset

if redis.call('HGET', KEYS[1], 'mode') == 'write' then
  return 1
end
--@include readers/longest_read
local longest = longest_read(KEYS[3])
if not longest then
  return 1
end
if longest > 0 then
  redis.call('PEXPIRE', KEYS[1], longest)
  redis.call('PEXPIRE', KEYS[4], longest)
  return 1
end
redis.call('DEL', KEYS[1], KEYS[4])
