-- The next fencing token, as the local `token`; 0 for a lock that has none. What is under the
-- token's key and is no token is left as it is (but for an expiry), and refused.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name; the lock again where there are to be none
-- ARGV[3]  how long the last token is remembered, milliseconds
--
-- The locals `digits` and `micros` (see deadline.lua) and `at_least`, a lower bound or '' (from a quorum, which
-- knows other servers' clocks).

local token = 0
if KEYS[2] ~= KEYS[1] then
  -- Server time keeps tokens rising when Redis restarts empty, the last token keeps
  -- them rising when the server's clock steps back.
  token = micros
  local bound = tonumber(at_least)
  local text = digits
  if bound and bound > token then
    text = at_least
    token = bound
  end
  local before = redis.call('SET', KEYS[2], text, 'PX', ARGV[3], 'GET')
  if before then
    --@include last_token
    if not last then
      redis.call('SET', KEYS[2], before)
      return redis.error_reply(no_token .. KEYS[2])
    end
    if last < 1000000000000000 then
      -- no time but the counter of a FencedLock or of Redisson's RFencedLock: it
      -- counts by one and has no expiry
      token = last + 1
      redis.call('SET', KEYS[2], token)
    elseif last >= token then
      token = last + 1
      redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
    end
  end
end
