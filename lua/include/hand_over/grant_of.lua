-- Defines grant_of(side, owner, token), the message to the client of an owner that has just
-- been made the holder: with it the owner may begin.
--
-- side    '1' for a writer, '0' for any other
-- token   its fencing token; or false if none could be minted: then the message grants nothing,
--         and the owner asks, and is told why
--
-- returns  <side> <owner without its client> <token> <server time in microseconds> <lease>; the
--          owner is a secret until then, so that nobody else can write such a message
--
-- ARGV[3]  the lease, milliseconds
-- Needs the locals `digits` and `micros` (see digits.lua).

local function grant_of(side, owner, token)
  if not token then
    return side
  end
  local text = token == micros and digits or string.format('%.0f', token)
  return side .. ' ' .. string.sub(owner, 38) .. ' ' .. text .. ' ' .. digits .. ' ' .. ARGV[3]
end
