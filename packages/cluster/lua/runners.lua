-- The runners that are registered and count as alive, by machine id.
--
-- KEYS[1]  the runners, see register.lua
--
-- reply    for each: the runner, encoded; 1 if it is healthy, else 0

local time = redis.call('TIME')
local now = time[1] * 1e3 + math.floor(time[2] / 1000)
local alive = {}
for _, entry in ipairs(redis.call('HVALS', KEYS[1])) do
  local alive_until, health, id, runner = string.match(entry, '^(%d+)(%S) (%d+) %S+ (.*)$')
  if health ~= '-' and tonumber(alive_until) > now then
    alive[#alive + 1] = { tonumber(id), runner, tonumber(health) }
  end
end
table.sort(alive, function(one, other)
  return one[1] < other[1]
end)
local reply = {}
for i, runner in ipairs(alive) do
  reply[2 * i - 1] = runner[2]
  reply[2 * i] = runner[3]
end
return reply
