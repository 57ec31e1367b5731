-- Gives back all holds of a reader; the last reader hands the lock over. Owner ids are used
-- once, so it may run late, or twice. An owner that does not hold the lock loses its place.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- what follows is only here for a lock that is handed over (see hand_over_sides.lua):
-- KEYS[5]  the places
-- KEYS[6]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody
-- ARGV[3]  the lease of an owner that it is handed over to, milliseconds
-- ARGV[4]  how long a writer's token is remembered, milliseconds
--
-- reply    released: 1 + how many clients were woken to ask if the lock is free now, else 1
--          0 the lock is free, -1 it is held, but not by this reader

local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if held then
  -- first, as a full server (OOM) allows all writes of a script once it has removed something
  for number = 1, held do
    redis.call('DEL', KEYS[3] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. number)
  end
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[4], ARGV[1])
  --@include readers/end_read
else
  if KEYS[5] then
    redis.call('ZREM', KEYS[5], ARGV[1])
  end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return -1
  end
  if not KEYS[5] then
    return 0
  end
  -- the last release may have left the lock to this client, and told no other
end
local released = held and 1 or 0
if ARGV[2] == '' then
  return released
end
local message = '0'
--@include hand_over/tell_waiters
return held and released + listeners or 0
