-- Reserves a free lock for the owner with the oldest place: it becomes the holder for a
-- short lease, and a message on its client's own channel tells it to send another request,
-- which grants it the lock. Owners whose clients are not subscribed lose their places, at most a
-- hundred at a time. Sets `is_handed_over`, a local of the script.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each client also subscribes to <channel>:<client>
-- KEYS[3]  the places: { owner = when it got its place, microseconds }, our own zset; '' is no
--          place (see last_turn.lua)
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease, milliseconds

local passed_over = 0
local owner = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
while owner and owner ~= '' and passed_over < 100 and not is_handed_over do
  redis.call('ZREM', KEYS[3], owner)
  -- pcall: a user without permission to publish has still released
  local heard = redis.pcall(ARGV[2], KEYS[2] .. ':' .. string.sub(owner, 1, 36), '0')
  if type(heard) == 'number' and heard > 0 then
    is_handed_over = true
    redis.call('HSET', KEYS[1], owner, '1')
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  else
    passed_over = passed_over + 1
    owner = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  end
end
if owner == '' then
  -- nobody has a place
  redis.call('PEXPIRE', KEYS[3], 100)
end
