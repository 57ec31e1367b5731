-- A client that is denied permits, and will wait for them, has a place; so has one that is
-- granted permits while more of its fibers wait. The place is as old as the wait of the fiber
-- that it speaks for, and of others only since the client was last granted permits: a fiber
-- that waits for many gives those that wait for few no advantage.
--
-- KEYS[2]  the ids of a permit semaphore of this name
-- ARGV[1]  how many permits the semaphore begins with, or '' if its client does not say
-- Needs the locals `granted` (false, 0: denied), `available`, `places`, `wants`, `digits`,
-- `has_ids` (whether the permits have ids: then Redis knows how many there are), and of the
-- client: `me`; `if_denied` and `if_granted`, how many permits it then wants (0: none);
-- `denied_waited` and `granted_waited`, for how long it has then waited, milliseconds; and
-- `is_new` ('1': a request of a fiber that does not wait yet; it knows nothing of the others).

if places then
  local is_denied = not granted or granted == 0
  local next = is_denied and if_denied or is_new ~= '1' and if_granted
  if next == '0' then
    if not is_denied then
      --@include permit_places/remove
      remove(me)
    end
  elseif next then
    -- pcall: a full server (OOM) still tells that there are no permits
    if is_new == '1' then
      -- the waiters of its client may want fewer; else the place is for this fiber, and no older
      local before = tonumber(string.match(redis.call('HGET', wants, me) or '', '^%d+'))
      if before and before <= tonumber(next) then
        next = before
        redis.pcall('ZADD', places, 'NX', digits, me)
      else
        redis.pcall('ZADD', places, digits, me)
      end
    else
      local waited = is_denied and denied_waited or granted_waited
      redis.pcall('ZADD', places, micros - waited * 1000, me)
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
