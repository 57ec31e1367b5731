-- Sets the locals `now` (epoch milliseconds), `owner` (as in the name of a lease), `entry` (the state of the runner,
-- or false) and `is_registered`. Replies -1 if another process has registered at this address.
--
-- KEYS[1]  the runners, see register.lua
-- ARGV[1]  address
-- ARGV[2]  process
-- Needs the local `micros` (see deadline.lua).

local now = math.floor(micros / 1000)
local owner = ARGV[1] .. ' ' .. ARGV[2]
local entry = redis.call('HGET', KEYS[1], ARGV[1])
local is_registered = entry and string.sub(entry, 14, 14) ~= '-'
if is_registered and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then
  return -1
end
