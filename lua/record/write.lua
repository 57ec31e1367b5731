-- Writes a record of the holder of a lock, beside the lock. Refused unless this owner holds
-- the lock now. Idempotent: a version that is there already changes nothing, nor does
-- an older one that arrives late.
--
-- KEYS[1]  the lock
-- KEYS[2]  the record, a string: owner, token, version and value, with a space between
--          them; also the name of its channel
-- ARGV[1]  owner
-- ARGV[2]  the fencing token of its grant
-- ARGV[3]  version: rises with every write of this owner
-- ARGV[4]  value
-- ARGV[5]  how long it is kept, milliseconds; 0 without limit
-- ARGV[6]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[7]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 written, or this or a later version of this owner is there; 0 not held by this owner

--@include deadline
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local owner, version = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) %S+ (%S+) ')
if owner == ARGV[1] and tonumber(version) >= tonumber(ARGV[3]) then
  return 1
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
if ARGV[5] ~= '0' then
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
redis.pcall(ARGV[6], KEYS[2], ARGV[2])
return 1
