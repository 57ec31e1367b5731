-- Defines queue_up(owner), which puts an owner that has no place at the end of the
-- queue. Its score is that of the waiter before it plus the time that Redisson gives a
-- waiter: each waiter that is served subtracts this time from the scores of all others.
--
-- KEYS[1], KEYS[3], KEYS[4] and the local `now` as in skip_the_dead; `patience` in
-- milliseconds

local function queue_up(owner)
  if redis.call('ZSCORE', KEYS[4], owner) then
    return
  end
  local last = redis.call('LINDEX', KEYS[3], -1)
  local base = last and redis.call('ZSCORE', KEYS[4], last)
  if base then
    base = math.max(tonumber(base), now)
  else
    base = now + math.max(0, redis.call('PTTL', KEYS[1]))
  end
  redis.call('ZADD', KEYS[4], base + patience, owner)
  redis.call('RPUSH', KEYS[3], owner)
end
