-- Gives a permit another lease, longer or shorter.
--
-- KEYS[1]  the ids, a zset
-- ARGV[1]  the id
-- ARGV[2]  lease from now, milliseconds; -1 for one that never ends
-- ARGV[3]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 done, 0 the permit is not held

--@include deadline
--@include permits/raw
local now = time[1] * 1e3 + math.floor(time[2] / 1000)
local score = redis.call('ZSCORE', KEYS[1], raw(ARGV[1]))
if not score or tonumber(score) <= now then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[2] == '-1' and '922337203685477' or now + ARGV[2], raw(ARGV[1]))
return 1
