-- Extends the holds of many readers at once, each reader's only if it still holds, and then
-- all of them, even one whose own lease has ended while another kept the lock. Nobody
-- becomes a holder, no deadline is lowered, and other readers' holds do not change.
--
-- KEYS     per reader: the lock, { reader = epoch milliseconds at which the last of its
--          holds ends }, our own zset, then each of its holds
-- ARGV     per reader: lease, milliseconds (0 to extend nothing), owner, number of holds
--
-- reply    per reader: 1 extended, 0 not held by this owner
--@urgent

-- A full server (OOM) refuses commands that may need memory, but only until the script has
-- written: this removes nothing. pcall: a foreign type at one name must not stop the others.
redis.pcall('HDEL', KEYS[1], '')
local time = redis.call('TIME')
--@include readers/note_reader
local replies = {}
local key = 1

for i = 1, #ARGV, 3 do
  local lease, owner, holds = tonumber(ARGV[i]), ARGV[i + 1], tonumber(ARGV[i + 2])
  local lock, readers = KEYS[key], KEYS[key + 1]
  local held = redis.pcall('HGET', lock, owner)
  -- a server of a quorum may have missed a hold
  local last = type(held) == 'string' and key + 1 + math.min(holds, tonumber(held)) or key + 1
  replies[#replies + 1] = 0
  local first = key + 2
  while first <= last and redis.call('EXISTS', KEYS[first]) == 0 do
    first = first + 1
  end
  if first <= last then
    replies[#replies] = 1
    for hold = key + 2, last do
      local left = redis.call('PTTL', KEYS[hold])
      if left == -2 and lease > 0 then
        redis.call('SET', KEYS[hold], 1, 'PX', lease)
      elseif left < lease and lease > 0 then
        redis.call('PEXPIRE', KEYS[hold], lease)
      end
    end
    local left = redis.call('PTTL', lock)
    if left < lease and lease > 0 then
      redis.call('PEXPIRE', lock, lease)
    end
    note_reader(readers, owner, lock, lease)
  end
  key = key + 2 + holds
end
return replies
