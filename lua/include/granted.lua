-- Replies with the token of a grant. The store learns the server's clock from it: most
-- tokens are the server time.
--
-- Needs the locals `token`, `digits` and `micros`.
--
-- reply    the token, if it is the server time in microseconds; otherwise (0 for a lock
--          without tokens)
--          { 'granted', token, server time in microseconds }

if token == micros then
  return token
end
return { 'granted', token, digits }
