-- Gives back one shard, if this process holds it. Idempotent.
--
-- KEYS[1]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  shard
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds: later, the process
--          may have taken the shard again
--
-- reply    1 released, 0 it was not held by this process

--@include deadline
local lock = redis.call('HGET', KEYS[1], ARGV[3])
if lock and string.sub(lock, 15) == ARGV[1] .. ' ' .. ARGV[2] then
  return redis.call('HDEL', KEYS[1], ARGV[3])
end
return 0
