-- Hands a free lock over to the owner with the oldest place: it becomes the holder for a short
-- lease, with a token, and a message on its client's own channel tells it so. The owner begins,
-- and extends the lease; or, if it cannot tell how old the message is, sends another request,
-- which is granted. Owners whose clients are not subscribed lose their places, at most a hundred
-- at a time. Sets `is_handed_over`, a local of the script.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each client also subscribes to <channel>:<client>
-- KEYS[3]  the places: { owner = when it got its place, microseconds }, our own zset; '' is no
--          place (see last_turn.lua)
-- KEYS[4]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease, milliseconds
-- ARGV[4]  how long the last token is remembered, milliseconds; '' for a counter
-- Needs the locals `digits` and `micros` (see digits.lua).

local passed_over = 0
local owner = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
if owner and owner ~= '' then
  --@include tokens/next_token
  --@include hand_over/tell_owner
  while owner and owner ~= '' and passed_over < 100 and not is_handed_over do
    redis.call('ZREM', KEYS[3], owner)
    -- the secret of the message is the owner's own number, with which it has asked
    local client, number = string.sub(owner, 1, 36), string.sub(owner, 38)
    if hears(client, '0') then
      is_handed_over = true
      redis.call('HSET', KEYS[1], owner, '1')
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      tell(client, '0', number, (next_token(KEYS[1], KEYS[4], ARGV[4])))
    else
      passed_over = passed_over + 1
      owner = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    end
  end
end
if owner == '' then
  -- nobody has a place
  redis.call('PEXPIRE', KEYS[3], 100)
end
