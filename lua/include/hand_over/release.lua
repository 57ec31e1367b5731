-- Releases one lock and hands it over: all of lock/release.lua, which says what KEYS, ARGV and
-- the reply are. In multi_lock/release.lua it is the body of a function.
--
-- Needs the local `nobody_waits`: whether it is known that no owner has a place.

local released = redis.call('HDEL', KEYS[1], ARGV[1])
if released == 0 then
  if KEYS[3] then
    redis.call('ZREM', KEYS[3], ARGV[1])
  end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return -1
  end
  if not KEYS[3] then
    return 0
  end
  -- the last release may have left the lock to this client, and told no other
end
if ARGV[2] ~= 'PUBLISH' and ARGV[2] ~= 'SPUBLISH' then
  if released == 1 and ARGV[2] ~= '' then
    -- left to that owner: nobody else comes in before its request
    redis.call('HSET', KEYS[1], ARGV[2], '1')
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    redis.call('ZREM', KEYS[3], ARGV[2])
  end
  return released
end
local has_places = KEYS[3] and not nobody_waits and redis.call('EXISTS', KEYS[3]) == 1
local is_handed_over = false
local listeners
if not has_places then
  --@include hand_over/wake_all
end
if has_places or (KEYS[3] and listeners > 0) then
  local places = KEYS[3]
  --@include digits
  --@include hand_over/others_turn
  if has_places and not is_others_turn then
    --@include hand_over/hand_over
    if is_handed_over then
      return released
    end
  end
end
if has_places then
  --@include hand_over/wake_all
end
return released == 1 and 1 + listeners or 0
