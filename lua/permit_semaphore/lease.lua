-- Reads the lease of a permit.
--
-- KEYS[1]  the ids, a zset
-- ARGV[1]  the id
--
-- reply    milliseconds left, -1 if the permit never expires, -2 if it is not held

--@include permits/raw
local score = redis.call('ZSCORE', KEYS[1], raw(ARGV[1]))
if not score then
  return -2
end
score = tonumber(score)
if score >= 922337203685477 then
  return -1
end
local time = redis.call('TIME')
local left = score - time[1] * 1e3 - math.floor(time[2] / 1000)
return left > 0 and left or -2
