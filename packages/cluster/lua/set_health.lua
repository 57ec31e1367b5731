-- Notes whether a registered runner is healthy; any process may report it. Idempotent.
--
-- KEYS[1]  the runners, see register.lua
-- ARGV[1]  address
-- ARGV[2]  "1" if it is healthy, else "0"
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 noted, 0 it is not registered

--@include deadline
local entry = redis.call('HGET', KEYS[1], ARGV[1])
if not entry or string.sub(entry, 14, 14) == '-' then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], string.sub(entry, 1, 13) .. ARGV[2] .. string.sub(entry, 15))
return 1
