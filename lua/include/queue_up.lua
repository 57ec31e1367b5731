-- Defines queue_up(owner), which puts an owner that has no place at the end of the
-- queue. Its score is the one that Redisson computes: each waiter before it may take as
-- long as Redisson waits for a head, and so may itself.
--
-- KEYS[1], KEYS[3], KEYS[4] and the local `now` as in skip_the_dead; `patience` in
-- milliseconds

local function queue_up(owner)
  if redis.call('ZSCORE', KEYS[4], owner) then
    return
  end
  local free = now + math.max(0, redis.call('PTTL', KEYS[1]))
  local length = redis.call('RPUSH', KEYS[3], owner)
  redis.call('ZADD', KEYS[4], free + patience * length, owner)
end
