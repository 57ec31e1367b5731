-- Sets the local `available` to the number of free permits, or false if there is no
-- counter.
--
-- KEYS[1]  the counter, a string

local available = redis.call('GET', KEYS[1])
if available then
  available = tonumber(available)
  if not available then
    return redis.error_reply('WRONGTYPE not a counter')
  end
end
