-- Gives several locks of one owner back, and wakes one waiter of every client for each.
--
-- KEYS     per lock: the lock, and its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
--
-- reply    per lock: 1 + how many clients were listening: released
--                    0 the lock is free, -1 somebody else holds it

local reply = {}
for i = 1, #KEYS, 2 do
  -- pcall: a foreign type at one name must not stop the others
  if redis.pcall('HDEL', KEYS[i], ARGV[1]) == 1 then
    -- pcall: a message is a hint, and a user who may not send it has released all the same
    local listeners = redis.pcall(ARGV[2], KEYS[i + 1], '0')
    reply[#reply + 1] = type(listeners) == 'number' and 1 + listeners or 1
  else
    reply[#reply + 1] = -redis.call('EXISTS', KEYS[i])
  end
end
return reply
