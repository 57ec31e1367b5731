-- Sets the local `mode` of a read-write lock: 'read' or 'write', or false if it is free. A lock of another kind is refused.
--
-- KEYS[1]  the lock

local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')
end
