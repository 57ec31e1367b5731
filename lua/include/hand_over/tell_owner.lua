-- Defines hears(owner, side), whether the client of an owner hears what is told it, and
-- tell(owner, side, token), which tells it that the owner has been made the holder: with the
-- message the owner may begin. What is not heard here is not published: replicas would pass it on
-- to clients that are still subscribed there, and nobody was granted anything.
--
-- side    '1' for a writer, '0' for any other
-- token   its fencing token; or false if none could be minted: then the message grants nothing,
--         and the owner asks, and is told why
--
-- message  <side> <owner without its client> <token> <server time in microseconds> <lease>; the
--          owner is a secret until then, so that nobody else can write such a message
--
-- KEYS[2]  the channel; each client also subscribes to <channel>:<client>
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease, milliseconds
-- Needs the locals `digits` and `micros` (see digits.lua).

local can_tell = true
local function hears(owner, side)
  local channel = KEYS[2] .. ':' .. string.sub(owner, 1, 36)
  local counts = redis.pcall('PUBSUB', ARGV[2] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', channel)
  if counts[2] then
    return counts[2] > 0
  end
  -- a user without permission for PUBSUB: the owner is only told to ask
  can_tell = false
  -- pcall: a user without permission to publish has still released
  local heard = redis.pcall(ARGV[2], channel, side)
  return type(heard) == 'number' and heard > 0
end
local function tell(owner, side, token)
  if not can_tell then
    return
  end
  local message = side
  if token then
    local text = token == micros and digits or string.format('%.0f', token)
    message = side .. ' ' .. string.sub(owner, 38) .. ' ' .. text .. ' ' .. digits .. ' ' .. ARGV[3]
  end
  redis.pcall(ARGV[2], KEYS[2] .. ':' .. string.sub(owner, 1, 36), message)
end
