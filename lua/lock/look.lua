-- Looks at everything that Redis has under a name, whatever kind it is, without touching it.
--
-- KEYS[1]  the lock, a hash; or the counter of a semaphore or a latch, a string
-- KEYS[2]  the last fencing token of this name
-- KEYS[3]  the queue of a fair lock, a list of owners
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- KEYS[5]  { client with a waiting writer = epoch milliseconds until which it counts }, a zset of ours
-- KEYS[6]  { permit id, 16 raw bytes = epoch milliseconds at which its lease ends }, a zset
-- KEYS[7]  the places (see hand_over.lua and spinners_turn.lua)
-- ARGV[1]  how many waiters, and how many permits, to reply at most
--
-- reply    { type of KEYS[1], milliseconds left (-1: no expiry, -2: free), last token or nil,
--            { owner, hold count, ... } of a hash, counter or nil,
--            { waiting owner, ... }, how many wait,
--            { reader, milliseconds left, ... }, { client with a waiting writer, ... },
--            { permit id in hexadecimal digits, milliseconds left (-1: never expires), ... },
--            how many are held,
--            { owner with a place, microseconds since it took it, ... }, how many there are,
--            server time in microseconds }

local kind = redis.call('TYPE', KEYS[1]).ok
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most = tonumber(ARGV[1])
-- The members of a zset whose time has not come yet, each followed by the milliseconds until then.
local function live(key)
  local found = redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  for i = 2, #found, 2 do
    local ends = tonumber(found[i])
    -- Redisson's "never"
    found[i] = ends >= 922337203685477 and -1 or ends - now
  end
  return found
end
local permits = live(KEYS[6])
for i = 1, #permits, 2 do
  permits[i] = string.gsub(permits[i], '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end)
end
local writers = {}
for i, text in ipairs(live(KEYS[5])) do
  if i % 2 == 1 then
    writers[#writers + 1] = text
  end
end
local placed = {}
local marks = 0
local scored = redis.call('ZRANGE', KEYS[7], 0, most + 1, 'WITHSCORES')
for i = 1, #scored, 2 do
  local taken_at = tonumber(scored[i + 1])
  if scored[i] == '' or scored[i] == '~' then
    marks = marks + 1
  else
    placed[#placed + 1] = scored[i]
    placed[#placed + 1] = time[1] * 1000000 + time[2] - (taken_at < 0 and taken_at + 4000000000000000 or taken_at)
  end
end
return {
  kind,
  redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[2]),
  kind == 'hash' and redis.call('HGETALL', KEYS[1]) or {},
  kind == 'string' and redis.call('GET', KEYS[1]),
  redis.call('LRANGE', KEYS[3], 0, most - 1),
  redis.call('LLEN', KEYS[3]),
  live(KEYS[4]),
  writers,
  permits,
  redis.call('ZCOUNT', KEYS[6], '(' .. now, '+inf'),
  placed,
  redis.call('ZCARD', KEYS[7]) - marks,
  time[1] * 1000000 + time[2]
}
