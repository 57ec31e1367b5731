-- Adds a hold to a reader that holds already. The count is absolute, so a command that
-- is sent twice counts once; no deadline is lowered.
--
-- KEYS[1]  the lock
-- KEYS[2]  the new hold, a string that lives as long as its lease
-- ARGV[1]  owner
-- ARGV[2]  hold count
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 held, 0 not held by this owner (nothing was written)

--@include deadline
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], 1, 'PX', ARGV[3])
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
