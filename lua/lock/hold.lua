-- Writes the hold count of an owner that holds the lock, for re-entry and inner exit.
-- The count is absolute, so a command that is sent twice counts once; the deadline
-- is only ever raised.
--
-- KEYS[1]  the lock
-- ARGV[1]  owner
-- ARGV[2]  hold count
-- ARGV[3]  lease, milliseconds; 0 leaves the deadline as it is
--
-- reply    1 held, 0 not held by this owner (nothing was written)

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[3] == '0' then
  -- an inner exit: a full server (OOM) allows writes once the script has removed something
  redis.call('HDEL', KEYS[1], '')
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
