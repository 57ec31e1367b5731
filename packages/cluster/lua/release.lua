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
local owner = ARGV[1] .. ' ' .. ARGV[2] .. ' '
local lease = redis.call('HGET', KEYS[1], ARGV[3])
if not lease or string.sub(lease, 1, #owner) ~= owner then
  return 0
end
local state = redis.call('HGET', KEYS[1], lease)
local left = state and string.sub(state, 15) - 1
if left and left > 0 then
  redis.call('HSET', KEYS[1], lease, string.sub(state, 1, 14) .. left)
elseif left then
  redis.call('HDEL', KEYS[1], lease)
end
return redis.call('HDEL', KEYS[1], ARGV[3])
