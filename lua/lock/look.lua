-- Looks at everything that Redis has under a name, whatever kind it is, without touching it.
--
-- KEYS[1]  the lock, a hash; or the counter of a semaphore or a latch, a string
-- KEYS[2]  the last fencing token of this name
-- KEYS[3]  the queue of a fair lock, a list of owners
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- KEYS[5]  { permit id, 16 raw bytes = epoch milliseconds at which its lease ends }, a zset
-- KEYS[6]  the places (see hand_over.lua and hand_over_sides.lua)
-- ARGV[1]  how many waiters, and how many permits, to reply at most
--
-- reply    { type of KEYS[1], milliseconds left (-1: no expiry, -2: free), last token or nil,
--            { owner, hold count, ... } of a hash, or one empty field of a large one, counter or nil,
--            { waiting owner, ... }, how many wait,
--            { reader, milliseconds left, ... },
--            { permit id in hexadecimal digits, milliseconds left (-1: never expires), ... },
--            how many are held,
--            { owner with a place, microseconds since it took it, ... }, how many there are,
--            server time in microseconds }

local kind = redis.call('TYPE', KEYS[1]).ok
local time = redis.call('TIME')
local now = time[1] * 1e3 + math.floor(time[2] / 1000)
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
-- of another type, it is none of ours
local has_permits = redis.call('TYPE', KEYS[5]).ok == 'zset'
local permits = has_permits and live(KEYS[5]) or {}
for i = 1, #permits, 2 do
  permits[i] = string.gsub(permits[i], '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end)
end
-- those beyond are no places
local greatest = '(4000000000000000'
local placed = redis.call('ZRANGE', KEYS[6], '-inf', greatest, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
for i = 2, #placed, 2 do
  placed[i] = time[1] * 1e6 + time[2] - placed[i]
end
-- A lock without a mode has one holder: a large hash is an application's, and not read. Its only field
-- here is no owner.
local is_large = kind == 'hash' and redis.call('HLEN', KEYS[1]) > 100 and redis.call('HEXISTS', KEYS[1], 'mode') == 0
return {
  kind,
  redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[2]),
  is_large and { '', '' } or kind == 'hash' and redis.call('HGETALL', KEYS[1]) or {},
  kind == 'string' and redis.call('GET', KEYS[1]),
  redis.call('LRANGE', KEYS[3], 0, most - 1),
  redis.call('LLEN', KEYS[3]),
  live(KEYS[4]),
  permits,
  has_permits and redis.call('ZCOUNT', KEYS[5], '(' .. now, '+inf') or 0,
  placed,
  redis.call('ZCOUNT', KEYS[6], '-inf', greatest),
  time[1] * 1e6 + time[2]
}
