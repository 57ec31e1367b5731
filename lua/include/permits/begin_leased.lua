-- Does what begin.lua does for a semaphore whose permits have ids, after reap.lua. Held
-- permits count too, in case only the counter has been removed.
--
-- KEYS[1]  the counter
-- KEYS[2]  the ids
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it

--@include permits/reap
local created = not available and ARGV[1] ~= ''
if created then
  available = ARGV[1] - redis.call('ZCARD', KEYS[2])
  redis.call('SET', KEYS[1], available)
end
