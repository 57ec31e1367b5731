-- Defines longest_read(stem): milliseconds until the last of all readers' holds runs out; 0
-- if all have run out, or nobody reads; nil if finding out would cost too much: the lock
-- then keeps its expiry. It must not have a writer. If all readers are clients of this
-- library, KEYS[4] is enough. Java's readers are not noted there, and finding the keys of
-- their holds takes a walk through all readers. Redisson walks at each release; this script
-- does so among at most a hundred readers. The keys are derived from the fields of the
-- hash, and are in its slot.
--
-- KEYS[1]  the lock
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset

local function longest_read(stem)
  -- all fields but the mode
  local readers = redis.call('HLEN', KEYS[1]) - 1
  if readers <= 0 then
    return 0
  end
  if redis.call('ZCARD', KEYS[4]) == readers then
    local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
    local time = redis.call('TIME')
    return math.max(0, last - time[1] * 1e3 - math.floor(time[2] / 1000))
  end
  if readers > 100 then
    return nil
  end
  local longest = 0
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    for number = 1, tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', stem .. ':' .. fields[i] .. ':rwlock_timeout:' .. number))
    end
  end
  return longest
end
