-- Extends the leases of many readers at once, each only if it still holds. Nobody becomes a
-- holder, no deadline is lowered, and other readers' leases do not change.
--
-- KEYS     per reader: the lock, { reader = epoch milliseconds at which its lease ends }, our
--          own zset, then the reader's lease
-- ARGV     per reader: lease, milliseconds (0 to extend nothing), owner
--
-- reply    per reader: 1 extended, 0 not held by this owner
--@urgent

-- A full server (OOM) refuses commands that may need memory, but only until the script has
-- written: this removes nothing. pcall: a foreign type at one name must not stop the others.
redis.pcall('HDEL', KEYS[1], '')
local time = redis.call('TIME')
--@include readers/note_reader
--@include extend
local replies = {}

for i = 1, #ARGV, 2 do
  local lease, owner = ARGV[i], ARGV[i + 1]
  local key = (i - 1) / 2 * 3
  local lock, readers, held = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  replies[#replies + 1] = 0
  -- its field stays while other readers keep the lock
  if redis.pcall('HEXISTS', lock, owner) == 1 and redis.call('EXISTS', held) == 1 then
    replies[#replies] = 1
    extend(held, lease)
    extend(lock, lease)
    note_reader(readers, owner, lock, tonumber(lease))
  end
end
return replies
