-- Defines hears(whose, side), whether a client hears what is told it on its own channel, and
-- tell(whose, side, secret, token), which tells an owner that it has been made the holder: with the
-- message the owner may begin. What is not heard here is not published: replicas would pass it on
-- to clients that are still subscribed there, and nobody was granted anything.
--
-- whose   the client; or, of a fair lock, the owner
-- side    '1' for a writer, '0' for any other
-- secret  a number that was never sent on a channel, so that nobody else can write such a message
-- token   its fencing token; or false if none could be minted: then the message grants nothing,
--         and the owner asks, and is told why
--
-- message  <side> <secret> <token> <server time in microseconds> <lease>
--
-- KEYS[2]  the channel; that of each client, or owner, is <channel>:<whose>
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease, milliseconds
-- Needs the locals `digits` and `micros` (see digits.lua).

local can_tell = true
local function hears(whose, side)
  local channel = KEYS[2] .. ':' .. whose
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
local function tell(whose, side, secret, token)
  if not can_tell then
    return
  end
  local message = side
  if token then
    local text = token == micros and digits or string.format('%.0f', token)
    message = side .. ' ' .. secret .. ' ' .. text .. ' ' .. digits .. ' ' .. ARGV[3]
  end
  redis.pcall(ARGV[2], KEYS[2] .. ':' .. whose, message)
end
