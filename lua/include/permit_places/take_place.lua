-- A client that is denied permits, and will wait for them, gets a place, or keeps the one it
-- has; one that is granted permits, while more of its fibers wait, gets a new one.
--
-- Needs the locals `granted` (false, 0: denied), `places`, `wants`, `digits`, and of the
-- client: `me`, `if_denied` and `if_granted` (how many permits it then wants, 0: none) and
-- `who`: 'oldest' or 'younger' for one of its waiters, 'new' for a request before it waits.

if places then
  local is_denied = not granted or granted == 0
  local next = is_denied and if_denied or who ~= 'new' and if_granted
  if next == '0' then
    if not is_denied then
      redis.call('ZREM', places, me)
      redis.call('HDEL', wants, me)
    end
  elseif next then
    -- the waiters of its client may want fewer
    local before = who == 'new' and string.match(redis.call('HGET', wants, me) or '', '^%d+')
    if before and tonumber(before) < tonumber(next) then
      next = before
    end
    -- pcall: a full server (OOM) still tells that there are no permits
    if not is_denied and who == 'oldest' then
      redis.pcall('ZADD', places, digits, me)
    else
      -- LT: a place that was taken before the clock stepped back must not be behind all new ones
      redis.pcall('ZADD', places, 'LT', digits, me)
    end
    redis.pcall('HSET', wants, me, next)
    -- they expire a minute after the last request
    redis.call('PEXPIRE', places, 60000)
    redis.call('PEXPIRE', wants, 60000)
  end
end
