-- Defines longest_read(stem): milliseconds until the last of all readers' holds runs out,
-- 0 when they all have. The keys of the holds are composed here, as in Redisson: only the
-- hash knows them, and they are in its slot.
--
-- KEYS[1]  the lock

local function longest_read(stem)
  local longest = 0
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    for number = 1, tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', stem .. ':' .. fields[i] .. ':rwlock_timeout:' .. number))
    end
  end
  return longest
end
