-- Keeps a runner alive, and extends a lease that has not ended and still covers every shard that it
-- covered at first. Compare and extend: nothing is ever created, and nothing is extended for an address
-- at which another process has registered since. Idempotent.
--
-- KEYS[1]  the runners, see register.lua
-- KEYS[2]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  how long a runner that no longer counts as alive keeps its machine id, milliseconds
-- ARGV[5]  the lease's epoch, from the reply of refresh.lua
-- ARGV[6]  how many shards it covered then
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 extended; 0 it has ended, or does not cover all of them any more; -1 another process has
--          registered at this address

--@include deadline
--@include registered_here
--@include keep_runner
local lease = owner .. ' ' .. ARGV[5]
local state = redis.call('HGET', KEYS[2], lease)
if not state or tonumber(string.sub(state, 1, 13)) <= now or string.sub(state, 15) ~= ARGV[6] then
  return 0
end
redis.call('HSET', KEYS[2], lease, now + ARGV[3] .. ' ' .. ARGV[6])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return 1
