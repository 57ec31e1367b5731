-- Puts shards under a new lease of the owner: those that it holds, and if `takes_free` is true also those
-- that nobody holds. A lease that is found to be over is deleted, so that it can never be extended
-- again, even if the server's clock is set back. Sets the local `reply` to the epoch of the new lease,
-- and behind it the positions of the shards that it does not cover, from 1 up.
--
-- KEYS[2]  the shards, see register.lua
-- ARGV[3]  lease, milliseconds
-- ARGV[first_shard - 1]  the number of this request, different for each request of the process
-- ARGV[first_shard...]  shards
-- ARGV[last]  is no shard
-- Needs the locals `now`, `owner` (see registered_here.lua), `digits` (see deadline.lua), `first_shard` and `takes_free`.

-- the number tells requests apart, the time tells apart two runs of one request
local epoch = ARGV[first_shard - 1] .. '-' .. digits
local prefix = owner .. ' '
local lease = prefix .. epoch
local reply = { epoch }
local size = 0
-- a shard that is named twice counts once
local counted = {}
-- whether the shards of a lease may be taken; `false` is the lease of a shard without one
local may_take = { [false] = takes_free, [lease] = true }
-- of the leases that shards are taken from: until when they last, and how many shards are left
local last_until, left = {}, {}

-- in parts: Lua can unpack only a few thousand values at once
for first = first_shard, #ARGV - 1, 1000 do
  local fields = {}
  local former_leases = redis.call('HMGET', KEYS[2], unpack(ARGV, first, math.min(first + 999, #ARGV - 1)))
  for i, former in ipairs(former_leases) do
    local shard = ARGV[first + i - 1]
    if may_take[former] == nil then
      local state = redis.call('HGET', KEYS[2], former)
      if not state or tonumber(string.sub(state, 1, 13)) <= now then
        may_take[former] = takes_free
        redis.call('HDEL', KEYS[2], former)
      elseif string.sub(former, 1, #prefix) == prefix then
        may_take[former] = true
        last_until[former] = string.sub(state, 1, 14)
        left[former] = tonumber(string.sub(state, 15))
      else
        may_take[former] = false
      end
    end
    if not may_take[former] then
      reply[#reply + 1] = first + i - first_shard
    elseif not counted[shard] then
      counted[shard] = true
      size = size + 1
      if left[former] then
        left[former] = left[former] - 1
      end
      fields[#fields + 1] = shard
      fields[#fields + 1] = lease
    end
  end
  if #fields > 0 then
    redis.call('HSET', KEYS[2], unpack(fields))
  end
end
for former, count in pairs(left) do
  if count > 0 then
    redis.call('HSET', KEYS[2], former, last_until[former] .. count)
  else
    redis.call('HDEL', KEYS[2], former)
  end
end
if size > 0 then
  redis.call('HSET', KEYS[2], lease, now + ARGV[3] .. ' ' .. size)
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
