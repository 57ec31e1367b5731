-- Replies to an owner that already holds the lock, because the command was sent twice; to one
-- that finds it held by another; and to one that asks during the turn of clients without places.
-- A read-write lock under this name is refused: its readers and writers would not see this
-- holder. Otherwise the script continues: the lock is free, or was handed over to this
-- owner, which has asked again.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  the places, for an owner that will wait (see hand_over.lua)
-- ARGV[1]  owner
-- Needs the locals `digits`; and, where there is KEYS[3], `has_asked`: whether this owner
-- has asked before.

-- nearly always neither exists, which costs one command
if redis.call('EXISTS', KEYS[1], KEYS[3] or KEYS[1]) > 0 then
  local places = KEYS[3]
  local denial
  if redis.call('EXISTS', KEYS[1]) == 1 then
    local is_held = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
    if is_held and not has_asked then
      --@include tokens/granted_before
    end
    if not is_held then
      if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
        return redis.error_reply('WRONGTYPE a read-write lock')
      end
      denial = { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }
    end
  else
    --@include hand_over/last_turn
    if turn_left > 0 then
      denial = { math.ceil(turn_left / 1000), '' }
    elseif has_asked then
      redis.call('ZREM', KEYS[3], ARGV[1])
    end
  end
  if denial then
    local place = ARGV[1]
    --@include hand_over/denied
  end
end
