-- Releases several locks of one owner, and wakes one waiter of every client for each.
--
-- KEYS     per lock: the lock, and its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 if all were released and nobody was listening; otherwise per lock:
--          1 + how many clients were listening: released
--          0 the lock is free, -1 another owner holds it

local pcall = redis.pcall
local owner = ARGV[1]
local publish = ARGV[2]
local is_plain = true
local reply = {}
for i = 1, #KEYS, 2 do
  local released = 1
  -- pcall: a foreign type at one name must not stop the others
  if pcall('HDEL', KEYS[i], owner) == 1 then
    -- pcall: a message is a hint; a user without permission to publish has still released
    local listeners = pcall(publish, KEYS[i + 1], '0')
    if type(listeners) == 'number' then
      released = 1 + listeners
    end
  else
    released = -redis.call('EXISTS', KEYS[i])
  end
  is_plain = is_plain and released == 1
  reply[(i + 1) / 2] = released
end
return is_plain and 1 or reply
