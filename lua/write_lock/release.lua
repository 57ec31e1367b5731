-- Gives the write lock back, whatever the hold count. Where the writer also reads, it
-- goes on as a reader: other readers are told in that case, too.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH where sharded pub/sub is in use; empty to wake nobody
--
-- reply    1 + how many clients were listening: released
--          0 the lock is free, -1 somebody else holds it

if redis.call('HDEL', KEYS[1], ARGV[1] .. ':write') == 0 then
  return -redis.call('EXISTS', KEYS[1])
end
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
if ARGV[2] == '' then
  return 1
end
-- pcall: a message is a hint, and a user who may not send it has released all the same
local listeners = redis.pcall(ARGV[2], KEYS[2], '1')
return type(listeners) == 'number' and 1 + listeners or 1
