-- Gives the lock back, whatever the hold count, and wakes one waiter of every client.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
--
-- reply    1 + how many clients were listening: released
--          0 the lock is free, -1 somebody else holds it

if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  return 1 + redis.call(ARGV[2], KEYS[2], '0')
end
return -redis.call('EXISTS', KEYS[1])
