-- Hands a free lock over to the head of the queue, if it is an owner of ours that hears of it: it
-- becomes the holder for a short lease, with a token, and a message on its own channel tells it
-- so (see hand_over/hand_over.lua). Any other head is told to ask. Sets the local `listeners` to
-- how many clients were.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each waiter subscribes to its own: <channel>:<owner>
-- KEYS[3], KEYS[4], KEYS[5] as in skip_the_dead
-- KEYS[6]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease, milliseconds
-- ARGV[4]  how long the token is remembered, milliseconds
-- ARGV[5]  what the head has added to the scores of those behind it, milliseconds
-- Needs the locals `digits` and `micros`, `head` and `now` (see skip_the_dead.lua), `leave_queue` and `keep_front` (see
-- leave_queue.lua and keep_front.lua).

local listeners = 0
local secret = redis.call('ZSCORE', KEYS[5], head)
--@include hand_over/tell_owner
if secret and hears(head, '0') then
  --@include tokens/next_token
  leave_queue(head)
  redis.call('HSET', KEYS[1], head, '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  tell(head, '0', secret, (next_token(KEYS[1], KEYS[6], ARGV[4])))
  if redis.call('EXISTS', KEYS[3]) == 1 then
    -- for how long the owner is going to extend its lease is not known here: at most a day
    keep_front(ARGV[5], 86400000)
  else
    redis.call('DEL', KEYS[4], KEYS[5])
  end
elseif can_tell then
  -- pcall: a message is a hint; a user without permission to publish has still released
  local heard = redis.pcall(ARGV[2], KEYS[2] .. ':' .. head, '0')
  listeners = type(heard) == 'number' and heard or 0
end
