-- Gives the owner a new lease of each shard whose lock it may have. Sets the local `refused` to the
-- positions of the others, from 1 up.
--
-- KEYS[2]  the shards, see register.lua
-- ARGV[3]  lease, milliseconds
-- ARGV[first_shard...]  shards
-- ARGV[last]  is no shard
-- Needs the locals `now`, `owner`, `first_shard`, and may_have(lock), whose argument is false for a shard without
-- a lock.

local refused = {}
local leased = now + ARGV[3] .. ' ' .. owner
-- shards that were leased together have the same text: it is parsed once
local seen, is_granted
-- in parts: Lua can unpack only a few thousand values at once
for first = first_shard, #ARGV - 1, 1000 do
  local last = math.min(first + 999, #ARGV - 1)
  local granted = {}
  for i, lock in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, first, last))) do
    if lock ~= seen then
      seen = lock
      is_granted = may_have(lock)
    end
    if is_granted then
      granted[#granted + 1] = ARGV[first + i - 1]
      granted[#granted + 1] = leased
    else
      refused[#refused + 1] = first + i - first_shard
    end
  end
  if #granted > 0 then
    redis.call('HSET', KEYS[2], unpack(granted))
  end
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
