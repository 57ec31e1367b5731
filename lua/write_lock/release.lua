-- Releases the write lock, regardless of its hold count, and hands it over. A writer that
-- also reads stays a reader: other readers are let in then, too, and the lock lives as long
-- as the writer's reads. An owner that does not hold the lock loses its place, and readers
-- that waited behind it are let in if others read.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- KEYS[5]  the places (see hand_over_sides.lua)
-- KEYS[6]  the last fencing token of this name; or the lock again for a lock without tokens; only
--          here for a lock that is handed over
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody; or the owner
--          of the writer that it is left to (see lock/release.lua), unless readers hold it
-- ARGV[3]  the lease of an owner that it is handed over or left to, milliseconds; '' for a lock
--          that is not handed over
-- ARGV[4]  how long a writer's token is remembered, milliseconds
-- ARGV[5]  whose place is given up if this owner does not hold the lock: as in acquire.lua; '' for none
--
-- reply    1 + how many clients were woken to ask: released
--          0 the lock is free, -1 another owner holds it

local released = redis.call('HDEL', KEYS[1], ARGV[1] .. ':write')
local without = 0
if released == 0 then
  local place = ARGV[5] .. ':write'
  local had_place = redis.call('ZREM', KEYS[5], place, place .. ':asked') > 0
  without = -redis.call('EXISTS', KEYS[1])
  local is_read = without == -1 and redis.call('HGET', KEYS[1], 'mode') == 'read'
  if without == -1 and not (had_place and is_read) or ARGV[3] == '' and not had_place then
    return without
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
if ARGV[2] ~= 'PUBLISH' and ARGV[2] ~= 'SPUBLISH' then
  if released == 1 and ARGV[2] ~= '' and redis.call('EXISTS', KEYS[1]) == 0 then
    local field = ARGV[2] .. ':write'
    redis.call('HSET', KEYS[1], 'mode', 'write', field, '1')
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    redis.call('ZREM', KEYS[5], field, field .. ':asked')
  end
  return released == 1 and 1 or without
end
local message = '1'
--@include hand_over/tell_waiters
return released == 1 and 1 + listeners or without
