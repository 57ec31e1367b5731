-- Keeps a runner alive, and extends those of its shards that this process still holds by a lease that
-- has not ended. Compare and extend: nothing is ever created, and nothing is extended for an address
-- at which another process has registered since. Idempotent.
--
-- KEYS[1]  the runners, see register.lua
-- KEYS[2]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  how long a runner that no longer counts as alive keeps its machine id, milliseconds
-- ARGV[5...]  shards
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    the positions of the shards that are not held, from 1 up; -1 instead if another process
--          has registered at this address

--@include deadline
--@include registered_here
if is_registered then
  redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. string.sub(entry, 14))
  local life = ARGV[3] + ARGV[4]
  if redis.call('PTTL', KEYS[1]) < life then
    redis.call('PEXPIRE', KEYS[1], life)
  end
end
local first_shard = 5
local function may_have(lock)
  return lock and tonumber(string.sub(lock, 1, 13)) > now and string.sub(lock, 15) == owner
end
--@include lease_shards
return refused
