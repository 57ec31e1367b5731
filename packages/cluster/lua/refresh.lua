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
local now = math.floor(micros / 1000)
local owner = ARGV[1] .. ' ' .. ARGV[2]
local held = now + ARGV[3] .. ' ' .. owner

local entry = redis.call('HGET', KEYS[1], ARGV[1])
if entry and string.sub(entry, 14, 14) ~= '-' then
  if string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then
    return -1
  end
  redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. string.sub(entry, 14))
  local life = ARGV[3] + ARGV[4]
  if redis.call('PTTL', KEYS[1]) < life then
    redis.call('PEXPIRE', KEYS[1], life)
  end
end

local lost = {}
-- shards that were refreshed together have the same text: it is parsed once
local seen, is_held = false, false
-- in parts: Lua can unpack only a few thousand values at once
for first = 5, #ARGV - 1, 1000 do
  local last = math.min(first + 999, #ARGV - 1)
  local kept = {}
  for i, lock in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, first, last))) do
    if lock ~= seen then
      seen = lock
      is_held = lock and tonumber(string.sub(lock, 1, 13)) > now and string.sub(lock, 15) == owner
    end
    if is_held then
      kept[#kept + 1] = ARGV[first + i - 1]
      kept[#kept + 1] = held
    else
      lost[#lost + 1] = first + i - 5
    end
  end
  if #kept > 0 then
    redis.call('HSET', KEYS[2], unpack(kept))
  end
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return lost
