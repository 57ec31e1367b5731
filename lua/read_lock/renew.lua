-- Extends holds of many readers at once, each only if it still holds. Compare and
-- extend: nothing is ever created, no deadline is ever lowered, and no other reader's
-- holds are touched.
--
-- KEYS     per reader: the lock, then each of its holds
-- ARGV[1]  lease, milliseconds
-- ARGV[..] per reader: owner, number of holds
--
-- reply    per reader: 1 extended, 0 not held by this owner

local lease = tonumber(ARGV[1])
local replies = {}
local key = 1

local function extend(name)
  local left = redis.call('PTTL', name)
  if left >= 0 and left < lease then
    redis.call('PEXPIRE', name, ARGV[1])
  end
  return left ~= -2
end

for i = 2, #ARGV, 2 do
  local lock, holds = KEYS[key], tonumber(ARGV[i + 1])
  replies[#replies + 1] = 0
  -- pcall: a foreign type at one name must not stop the others
  if redis.pcall('HEXISTS', lock, ARGV[i]) == 1 then
    for hold = key + 1, key + holds do
      if extend(KEYS[hold]) then
        replies[#replies] = 1
      end
    end
    if replies[#replies] == 1 then
      extend(lock)
    end
  end
  key = key + 1 + holds
end
return replies
