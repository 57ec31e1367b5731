-- Gives back one shard, if this process holds it by a request that it had sent before. Idempotent.
--
-- KEYS[1]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  the number of the last request that the process had sent: if this arrives late, the process may have
--          taken the shard again by a later one
-- ARGV[4]  shard
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 released, 0 it was not held, or by a later request

--@include deadline
local owner = ARGV[1] .. ' ' .. ARGV[2] .. ' '
--@include is_earlier
local lease = redis.call('HGET', KEYS[1], ARGV[4])
if not is_earlier(lease) then
  return 0
end
local state = redis.call('HGET', KEYS[1], lease)
local left = state and string.sub(state, 15) - 1
if left and left > 0 then
  redis.call('HSET', KEYS[1], lease, string.sub(state, 1, 14) .. left)
elseif left then
  redis.call('HDEL', KEYS[1], lease)
end
return redis.call('HDEL', KEYS[1], ARGV[4])
