-- Reads the local `before`, the value under the key of a token. Sets the locals `last`, a
-- whole number or false, and `no_token`, the refusal.

local no_token = 'WRONGTYPE something that is no fencing token, under '
local last = tonumber(before)
-- above 2^53 adding one has no effect; a number that is not whole, or NaN, is no token
if last and (last % 1 ~= 0 or last >= 9007199254740992) then
  last = false
end
