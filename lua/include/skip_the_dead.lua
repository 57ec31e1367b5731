-- Removes waiters that are gone from the head of a fair queue, however many: the
-- locals `now` (epoch milliseconds), `first` (who was at the head) and `head` (the
-- first that lives, or false).
-- A waiter is gone when its score is reached (Redisson's rule), or when its client
-- has not reported for too long (clients of this library only).
--
-- KEYS[3]  the queue, a list of owners (Redisson's)
-- KEYS[4]  { owner = epoch milliseconds at which Redisson takes it for dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive }, a zset of ours

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = redis.call('LINDEX', KEYS[3], 0)
local head = first
while head do
  local due = redis.call('ZSCORE', KEYS[4], head)
  if not due then
    -- Redisson would keep a head without a score for ever
    redis.call('ZADD', KEYS[4], now + 300000, head)
    break
  end
  local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))
  if tonumber(due) > now and (not alive or tonumber(alive) > now) then
    break
  end
  redis.call('LPOP', KEYS[3])
  redis.call('ZREM', KEYS[4], head)
  head = redis.call('LINDEX', KEYS[3], 0)
end
