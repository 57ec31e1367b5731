-- Tells waiters that a read-write lock is free, or that its writer has become a reader:
-- hands it over to the oldest place. If there are no places, or it is the turn of
-- clients that take none, wakes one waiter of every client instead. Sets the local
-- `listeners` to how many clients were woken to ask.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each client also subscribes to <channel>:<client>
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- KEYS[5], KEYS[6] and ARGV[4] as in hand_over_sides.lua
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease of an owner that it is handed over to, milliseconds; '' for a lock that is
--          not handed over
-- Needs the local `message`: what the clients are told.

local places = ARGV[3] ~= '' and KEYS[5]
local has_places = places and redis.call('EXISTS', places) == 1
local is_handed_over = false
local listeners = 0
local function wake_all()
  -- pcall: a message is a hint; a user without permission to publish has still released
  local heard = redis.pcall(ARGV[2], KEYS[2], message)
  listeners = type(heard) == 'number' and heard or 0
end
if not has_places then
  wake_all()
end
if has_places or (places and listeners > 0) then
  --@include digits
  --@include hand_over/others_turn
  if has_places and not is_others_turn then
    --@include hand_over/hand_over_sides
  end
end
if has_places and not is_handed_over then
  wake_all()
end
