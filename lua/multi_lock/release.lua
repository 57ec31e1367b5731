-- Gives several locks of one owner back, and wakes one waiter of every client for each.
--
-- KEYS     per lock: the lock, and its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
--
-- reply    per lock: 1 + how many clients were listening: released
--                    0 the lock is free, -1 somebody else holds it

local pcall = redis.pcall
local owner = ARGV[1]
local publish = ARGV[2]
local reply = {}
for i = 1, #KEYS, 2 do
  local released
  -- pcall: a foreign type at one name must not stop the others
  if pcall('HDEL', KEYS[i], owner) == 1 then
    -- pcall: a message is a hint, and a user who may not send it has released all the same
    local listeners = pcall(publish, KEYS[i + 1], '0')
    released = type(listeners) == 'number' and 1 + listeners or 1
  else
    released = -redis.call('EXISTS', KEYS[i])
  end
  reply[(i + 1) / 2] = released
end
return reply
