-- Gives the lock back but keeps it locked for a while, without an owner: its only field is
-- then <owner>:kept, so that nothing this owner has sent before can extend or free it. Wakes one
-- waiter of every client: the reply to its request says when the lock is free. If owners have
-- places, only the oldest gets the lock then, and others a little later (see hand_over/taken.lua):
-- a release hands a lock over to the oldest place, too.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the places, only here for a kind that is handed over (see hand_over.lua)
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[3]  how long it stays locked, milliseconds
--
-- reply    1 released, also if it was before; 0 the lock is free, -1 another owner holds it

local kept = ARGV[1] .. ':kept'
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  if redis.call('HEXISTS', KEYS[1], kept) == 1 then
    return 1
  end
  return -redis.call('EXISTS', KEYS[1])
end
-- for how long it is reserved for the oldest place, milliseconds
local reserved = 0
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then
  local places = KEYS[3]
  --@include digits
  --@include hand_over/others_turn
  --@include hand_over/tell_owner
  local oldest = not is_others_turn and redis.call('ZRANGE', places, 0, 0)[1]
  local passed_over = 0
  while oldest and oldest ~= '' and reserved == 0 and passed_over < 100 do
    if hears(string.sub(oldest, 1, 36), '0') then
      reserved = 100
    else
      redis.call('ZREM', places, oldest)
      passed_over = passed_over + 1
      oldest = redis.call('ZRANGE', places, 0, 0)[1]
    end
  end
end
redis.call('HSET', KEYS[1], kept, reserved)
redis.call('PEXPIRE', KEYS[1], ARGV[3] + reserved)
local listeners
--@include hand_over/wake_all
return 1
