-- Defines give_up(owner), which removes the place of an owner that was not served, if it has
-- one, and returns whether it had. What it had added to the scores of the first waiters behind
-- it is taken off them, as in Redisson: a waiter in Java that has died is to count as dead after
-- its own timeout.
--
-- KEYS[1], KEYS[3], KEYS[4] and the local `time` as in skip_the_dead; the local `leave_queue`
-- (see leave_queue.lua)

local function give_up(owner)
  local before = time[1] * 1e3 + math.floor(time[2] / 1000) + math.max(0, redis.call('PTTL', KEYS[1]))
  local own, added
  for _, waiter in ipairs(redis.call('LRANGE', KEYS[3], 0, 8)) do
    local due = tonumber(redis.call('ZSCORE', KEYS[4], waiter))
    -- its own may have been raised since others came behind it: these do not count on it
    if due and own and due > own then
      redis.call('ZADD', KEYS[4], due - added, waiter)
    elseif due and waiter == owner then
      own, added = due, math.max(0, due - before)
    end
    before = due or before
  end
  return leave_queue(owner)
end
