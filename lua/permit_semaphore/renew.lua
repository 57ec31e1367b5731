-- Extends the leases of many holders at once, each only if all its permits are held.
-- Compare and extend: nothing is ever created, no lease is shortened.
--
-- KEYS[i]  the ids of a semaphore, a zset
-- ARGV     per key: lease, milliseconds (0 to extend nothing), the ids of a holder, joined by
--          commas
--
-- reply    per key: 1 extended, 0 not held

-- A full server (OOM) refuses commands that may need memory, but only until the script has
-- written: this removes nothing. pcall: a foreign type at one name must not stop the others.
redis.pcall('ZREM', KEYS[1], '')
local time = redis.call('TIME')
local now = time[1] * 1e3 + math.floor(time[2] / 1000)
--@include permits/raw
local replies = {}
for i, permits in ipairs(KEYS) do
  local lease, ids = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
  local held = 1
  for id in string.gmatch(ids, '%x+') do
    local score = redis.pcall('ZSCORE', permits, raw(id))
    if type(score) ~= 'string' or tonumber(score) <= now then
      held = 0
    end
  end
  if held == 1 and lease > 0 then
    for id in string.gmatch(ids, '%x+') do
      redis.call('ZADD', permits, 'GT', now + lease, raw(id))
    end
  end
  replies[i] = held
end
return replies
