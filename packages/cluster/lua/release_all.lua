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
local owner = ARGV[1] .. ' ' .. ARGV[2] .. ' '
local all = redis.call('HGETALL', KEYS[1])
local released = 0
local fields = {}
for i = 1, #all, 2 do
  if string.sub(all[i + 1], 1, #owner) == owner then
    released = released + 1
    fields[#fields + 1] = all[i]
  elseif string.sub(all[i], 1, #owner) == owner then
    -- one of its leases
    fields[#fields + 1] = all[i]
  end
end
-- in parts: Lua can unpack only a few thousand values at once
for first = 1, #fields, 1000 do
  redis.call('HDEL', KEYS[1], unpack(fields, first, math.min(first + 999, #fields)))
end
return released
