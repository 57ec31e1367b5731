-- Defines keep_front(served, lease), which sets the scores of the first eight waiters: lower
-- by the milliseconds that a waiter which was just `served` had added (0 if none was), and at
-- most what Redisson computes for a new waiter in that place, while the lock is held for what
-- is left of its lease, or for `lease` milliseconds. Live waiters keep a score that is high
-- enough for Redisson's clients not to pass over them at the head.
--
-- KEYS[1], KEYS[3], KEYS[4], KEYS[5] and the local `now` as in skip_the_dead

local function keep_front(served, lease)
  local free = now + math.max(0, lease or redis.call('PTTL', KEYS[1]))
  for i, owner in ipairs(redis.call('LRANGE', KEYS[3], 0, 7)) do
    local due = tonumber(redis.call('ZSCORE', KEYS[4], owner))
    local alive = tonumber(redis.call('ZSCORE', KEYS[5], string.sub(owner, 1, 36)))
    local score = math.min(due and due - served or math.huge, free + 3e5 * i)
    if alive and alive > now and score < now + 1.5e5 * i then
      score = now + 3e5 * i
    end
    -- the remaining lease is rounded: not worth a command
    if not due or math.abs(score - due) > 10 then
      redis.call('ZADD', KEYS[4], score, owner)
    end
  end
end
