-- A client that is denied permits, and will wait for them, gets a place, or keeps the one it
-- has; one that is granted permits, while more of its fibers wait, gets a new one.
--
-- KEYS[2]  the ids of a permit semaphore of this name
-- ARGV[1]  how many permits the semaphore begins with, or '' if its client does not say
-- Needs the locals `granted` (false, 0: denied), `available`, `places`, `wants`, `digits`,
-- `has_ids` (whether the permits have ids: then Redis knows how many there are), and of the
-- client: `me`, `if_denied` and `if_granted` (how many permits it then wants, 0: none) and
-- `who`: 'oldest' or 'younger' for one of its waiters, 'new' for a request before it waits.

if places then
  local is_denied = not granted or granted == 0
  local next = is_denied and if_denied or who ~= 'new' and if_granted
  if next == '0' then
    if not is_denied then
      --@include permit_places/remove
      remove(me)
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
      -- LT: a place from before the clock stepped back must not be behind all new ones
      redis.pcall('ZADD', places, 'LT', digits, me)
    end
    local total = has_ids and (available or 0) + redis.call('ZCARD', KEYS[2]) or tonumber(ARGV[1])
    -- for how many seconds at a time several are kept for it: not at all if there are fewer, for
    -- as long as it takes if it is known that there are as many
    local longest = total and total < tonumber(next) and 0 or has_ids and 1000000 or 16
    redis.pcall('HSET', wants, me, next .. ' ' .. longest)
    -- they expire a minute after the last request
    redis.call('PEXPIRE', places, 60000)
    redis.call('PEXPIRE', wants, 60000)
  end
end
