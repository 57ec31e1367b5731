-- After a read has ended: keeps the lock for as long as the longest hold that is left,
-- or frees it and hands it over; readers whose holds have all run out do not keep it. A writer's lease is
-- never changed. Returns 1 + how many clients were woken to ask, if the lock is free now; else 1.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
--
-- KEYS[5]  the places, for a lock that is handed over: see tell_waiters.lua
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody

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
if ARGV[2] == '' then
  return 1
end
local message = '0'
--@include hand_over/tell_waiters
return 1 + listeners
