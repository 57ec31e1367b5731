-- Gives the lock back, whatever the hold count, and wakes one waiter of every client.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to wake nobody
--
-- reply    1 + how many clients were listening: released
--          0 the lock is free, -1 somebody else holds it

if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  if ARGV[2] == '' then
    return 1
  end
  -- pcall: a message is a hint; a user without permission to publish has still released
  local listeners = redis.pcall(ARGV[2], KEYS[2], '0')
  return type(listeners) == 'number' and 1 + listeners or 1
end
return -redis.call('EXISTS', KEYS[1])
