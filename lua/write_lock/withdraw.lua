-- Withdraws a client's announcement: its last waiting writer has stopped waiting, and
-- readers need not let it go first.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  { client with a waiting writer = epoch milliseconds until which it counts }, a zset of ours
-- ARGV[1]  client
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 withdrawn, 0 there was no announcement

local waited = redis.call('ZREM', KEYS[3], ARGV[1])
if waited == 1 then
  -- clients that have died withdraw nothing
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if #redis.call('ZRANGE', KEYS[3], '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1) == 0 then
    redis.pcall(ARGV[2], KEYS[2], '1')
  end
end
return waited
