-- Unregisters a runner, if this process has registered it. Its machine id stays taken while it
-- holds shards (see register.lua). Idempotent.
--
-- KEYS[1]  the runners, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds: later, the process
--          may have registered again
--
-- reply    1 unregistered, 0 it was not registered by this process

--@include deadline
local entry = redis.call('HGET', KEYS[1], ARGV[1])
local process = entry and string.match(entry, '^%d+%S %d+ (%S+)')
if process ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], string.sub(entry, 1, 13) .. '-' .. string.sub(entry, 15))
return 1
