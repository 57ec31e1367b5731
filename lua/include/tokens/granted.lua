-- Replies with the token of a grant. The store learns the server's clock from it, and tells
-- the token from the time: a short reply for nearly every grant.
--
-- Needs the locals `digits`, `micros` (see digits.lua), `token` and `foreseen` (from next_token.lua).
--
-- reply    the server time in microseconds, if the token is that, or the lower bound that the
--          command has, whichever is greater; otherwise (0 for a lock without tokens)
--          { 'granted', token, server time in microseconds }

if token == foreseen then
  return micros
end
return { 'granted', token, digits }
