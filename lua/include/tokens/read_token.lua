-- Defines read_token(lock, key), which returns the token of a reader's grant: that of the last
-- writer; if none is on record, one that is lower than the next writer's; 0 for a lock without
-- tokens. If the value under the key is no token, it returns false and the error.
--
-- lock  the key of the lock
-- key   that of the last fencing token of its name; or the lock again for a lock without tokens
--
-- Needs the local `micros` (see digits.lua).

local function read_token(lock, key)
  if key == lock then
    return 0
  end
  local before = redis.pcall('GET', key)
  if type(before) == 'table' then
    return false, before
  end
  if not before then
    return micros - 1
  end
  --@include tokens/last_token
  if not last then
    return false, redis.error_reply(no_token .. key)
  end
  return last
end
