-- Reads what is under the key of a token, the local `before`: the locals `last`, a number
-- that can be counted on, or false; and `no_token`, the refusal.

local no_token = 'WRONGTYPE something that is no fencing token, under '
local last = tonumber(before)
-- above 2^53 numbers are not counted by one; whatever is not whole, NaN included, is no token
if last and (last % 1 ~= 0 or last >= 9007199254740992) then
  last = false
end
