-- Extends the lease of one holder's permits, all of them or none. No lease is lowered.
--
-- KEYS[1]  the ids, a zset
-- ARGV[1]  lease, milliseconds
-- ARGV[2..]  the ids
--
-- reply    1 extended, 0 not all are held (nothing was written)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expiry = now + ARGV[1]
--@include raw
for i = 2, #ARGV do
  local score = redis.call('ZSCORE', KEYS[1], raw(ARGV[i]))
  if not score or tonumber(score) <= now then
    return 0
  end
end
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], 'GT', expiry, raw(ARGV[i]))
end
return 1
