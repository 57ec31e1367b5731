-- Sets the local `token` to the next fencing token; 0 for a lock without tokens; and
-- `foreseen` to the token that follows from the server time and the lower bound alone. A
-- value under the token's key that is no token is refused, and kept without its expiry.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[3]  how long the last token is remembered, milliseconds
--
-- Needs the locals `digits` and `micros` (see deadline.lua) and `at_least`, a lower bound
-- (from a quorum, which knows other servers' clocks), '' or nil.

local token = 0
local foreseen
if KEYS[2] ~= KEYS[1] then
  -- Server time keeps tokens rising when Redis restarts empty; the last token keeps
  -- them rising when the server's clock steps back.
  token = micros
  local bound = at_least and tonumber(at_least)
  local text = digits
  if bound and bound > token then
    text = at_least
    token = bound
  end
  foreseen = token
  local before = redis.call('SET', KEYS[2], text, 'PX', ARGV[3], 'GET')
  if before then
    --@include tokens/last_token
    if not last then
      redis.call('SET', KEYS[2], before)
      return redis.error_reply(no_token .. KEYS[2])
    end
    if last < 1000000000000000 then
      -- not a time but the counter of a FencedLock or of Redisson's RFencedLock: it
      -- counts by one and has no expiry
      token = last + 1
      redis.call('SET', KEYS[2], token)
    elseif last >= token then
      token = last + 1
      redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
    end
  end
end
