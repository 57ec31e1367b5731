-- Defines queue_up(owner), which puts an owner that has no place at the end of the queue.
-- Its score is the one that Redisson computes: for each waiter ahead of it, and for itself,
-- the time for which Redisson waits for a head.
--
-- KEYS[1], KEYS[3], KEYS[4] and the local `now` as in skip_the_dead; the local
-- `waiter_timeout`: Redisson's fairLockWaitTimeout, milliseconds

local function queue_up(owner)
  if redis.call('ZSCORE', KEYS[4], owner) then
    return
  end
  local free = now + math.max(0, redis.call('PTTL', KEYS[1]))
  local length = redis.call('RPUSH', KEYS[3], owner)
  redis.call('ZADD', KEYS[4], free + (waiter_timeout + 0.0) * length, owner)
end
