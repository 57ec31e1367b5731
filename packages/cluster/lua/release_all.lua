-- Gives back all shards that this process holds. Idempotent.
--
-- KEYS[1]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds: later, the process
--          may have taken shards again
--
-- reply    how many shards were released

--@include deadline
local owner = ARGV[1] .. ' ' .. ARGV[2]
local locks = redis.call('HGETALL', KEYS[1])
local held = {}
for i = 1, #locks, 2 do
  if string.sub(locks[i + 1], 15) == owner then
    held[#held + 1] = locks[i]
  end
end
-- in parts: Lua can unpack only a few thousand values at once
for first = 1, #held, 1000 do
  redis.call('HDEL', KEYS[1], unpack(held, first, math.min(first + 999, #held)))
end
return #held
