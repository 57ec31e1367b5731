-- Releases the lock, regardless of its hold count, and hands it over to the owner that has
-- waited longest. If no owner has a place, wakes one waiter of every client instead. An
-- owner that does not hold the lock loses its place.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3] and ARGV[3] are only here for a kind that is handed over:
-- KEYS[3]  the places (see hand_over.lua)
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to tell nobody
-- ARGV[3]  how long it is kept for the owner that it is handed over to, milliseconds
--
-- reply    1 + how many clients were woken to ask: released
--          0 the lock was free, -1 somebody else holds it

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
if ARGV[2] == '' then
  return released
end
local has_places = KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1
local is_handed_over = false
local listeners
if has_places then
  --@include hand_over/spinners_turn
  if is_handed_over then
    return released
  end
else
  --@include hand_over/wake_all
end
if has_places or (KEYS[3] and listeners > 0) then
  local places = KEYS[3]
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
