-- Refuses the name of a semaphore whose permits have ids: anonymous permits would
-- bypass its limit.
--
-- KEYS[2]  the ids of a permit semaphore of this name, a zset

if redis.call('EXISTS', KEYS[2]) == 1 then
  return redis.error_reply('WRONGTYPE a permit semaphore')
end
