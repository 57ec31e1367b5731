-- Gives back all shards that this process holds by requests that it had sent before. Idempotent.
--
-- KEYS[1]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  the number of the last request that the process had sent: if this arrives late, the process may have
--          taken shards again by a later one
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    how many shards were released

--@include deadline
local owner = ARGV[1] .. ' ' .. ARGV[2] .. ' '
--@include is_earlier
local all = redis.call('HGETALL', KEYS[1])
local released = 0
local fields = {}
for i = 1, #all, 2 do
  if is_earlier(all[i + 1]) then
    released = released + 1
    fields[#fields + 1] = all[i]
  elseif is_earlier(all[i]) then
    -- one of its leases
    fields[#fields + 1] = all[i]
  end
end
-- in parts: Lua can unpack only a few thousand values at once
for first = 1, #fields, 1000 do
  redis.call('HDEL', KEYS[1], unpack(fields, first, math.min(first + 999, #fields)))
end
return released
