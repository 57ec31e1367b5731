-- Frees the lock whoever holds it, and wakes one waiter of every client.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- ARGV[1]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
--
-- reply    1 it was held, 0 it was free

local existed = redis.call('DEL', KEYS[1])
if existed == 1 then
  redis.pcall(ARGV[1], KEYS[2], '0')
end
return existed
