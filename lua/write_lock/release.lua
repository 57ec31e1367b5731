-- Releases the write lock, regardless of its hold count, and hands it over. A writer that
-- also reads stays a reader: other readers are let in then, too, and the lock lives as long
-- as the writer's reads. An owner that does not hold the lock loses its place.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- KEYS[5] and ARGV[3] are only here for a lock that is handed over:
-- KEYS[5]  the places (see hand_over_sides.lua)
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody
-- ARGV[3]  how long it is kept for an owner that it is handed over to, milliseconds
--
-- reply    1 + how many clients were woken to ask: released
--          0 the lock is free, -1 another owner holds it

local released = redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
if released == 0 then
  if KEYS[5] then
    redis.call('ZREM', KEYS[5], ARGV[1] .. ':write')
  end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return -1
  end
  if not KEYS[5] then
    return 0
  end
  -- the last release may have left the lock to this client, and told no other
else
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
end
if ARGV[2] == '' then
  return released
end
local message = '1'
--@include hand_over/tell_waiters
return released == 1 and 1 + listeners or 0
