-- Defines next_token(lock, key, life, at_least), which mints the fencing token of a grant, and
-- returns it: 0 for a lock without tokens. Second, it returns the token that follows from the
-- server time and the lower bound alone, if it has minted one of those. A value under the key
-- that is no token is refused, and kept without its expiry: then it returns false and the error.
--
-- lock      the key of the lock
-- key       that of the last fencing token of its name; or the lock again for a lock without tokens
-- life      how long the last token is remembered, milliseconds; '' for a counter without expiry,
--           as of Redisson's RFencedLock
-- at_least  a lower bound (from a quorum, which knows other servers' clocks), '' or nil
--
-- Needs the locals `digits` and `micros` (see digits.lua).

local function next_token(lock, key, life, at_least)
  if key == lock then
    return 0
  end
  if life == '' then
    local count = redis.pcall('INCR', key)
    if type(count) == 'table' then
      return false,
        string.find(count.err, 'not an integer')
            and redis.error_reply('WRONGTYPE something that is no fencing token, under ' .. key)
          or count
    end
    if count >= 1000000000000000 then
      -- a plain lock of this name may have left its last token, which would expire
      redis.call('PERSIST', key)
    end
    return count
  end
  -- Server time keeps tokens rising when Redis restarts empty; the last token keeps
  -- them rising when the server's clock steps back.
  local foreseen = micros
  local text = digits
  local bound = at_least and tonumber(at_least)
  if bound and bound > foreseen then
    text = at_least
    foreseen = bound
  end
  local token = foreseen
  local before = redis.pcall('SET', key, text, 'PX', life, 'GET')
  if type(before) == 'table' then
    return false, before
  end
  if before then
    --@include tokens/last_token
    if not last then
      redis.call('SET', key, before)
      return false, redis.error_reply(no_token .. key)
    end
    if last < 1000000000000000 then
      -- not a time but the counter of a FencedLock or of Redisson's RFencedLock: it
      -- counts by one and has no expiry
      token = last + 1
      redis.call('SET', key, token)
    elseif last >= token then
      token = last + 1
      redis.call('SET', key, token, 'PX', life)
    end
  end
  return token, foreseen
end
