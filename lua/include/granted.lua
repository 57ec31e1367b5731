-- Replies with the token of a grant. The store learns the server's clock from it: most
-- tokens are the server time.
--
-- the locals `token`, `digits` and `micros`
--
-- reply    the token, where it is the server time in microseconds; otherwise (0 where there
--          are none)
--          { 'granted', token, server time in microseconds }

if token == micros then
  return token
end
return { 'granted', token, digits }
