-- Takes shards that are free, or that this process holds already, for one lease. Nothing is taken
-- for an address at which another process has registered since. Idempotent: sent twice it answers
-- with the same grants.
--
-- KEYS[1]  the runners, see register.lua
-- KEYS[2]  the shards, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  lease, milliseconds
-- ARGV[4...]  shards
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    the positions of the shards that others hold, from 1 up; -1 instead if another process
--          has registered at this address

--@include deadline
local now = math.floor(micros / 1000)
local owner = ARGV[1] .. ' ' .. ARGV[2]
local held = now + ARGV[3] .. ' ' .. owner

local entry = redis.call('HGET', KEYS[1], ARGV[1])
if entry and string.sub(entry, 14, 14) ~= '-' and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then
  return -1
end

local refused = {}
-- shards that were acquired together have the same text: it is parsed once
local seen, is_free = false, true
-- in parts: Lua can unpack only a few thousand values at once
for first = 4, #ARGV - 1, 1000 do
  local last = math.min(first + 999, #ARGV - 1)
  local taken = {}
  for i, lock in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, first, last))) do
    if lock ~= seen then
      seen = lock
      is_free = not lock or tonumber(string.sub(lock, 1, 13)) <= now or string.sub(lock, 15) == owner
    end
    if is_free then
      taken[#taken + 1] = ARGV[first + i - 1]
      taken[#taken + 1] = held
    else
      refused[#refused + 1] = first + i - 4
    end
  end
  if #taken > 0 then
    redis.call('HSET', KEYS[2], unpack(taken))
  end
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return refused
