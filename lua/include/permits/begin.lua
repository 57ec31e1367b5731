-- Creates a missing semaphore if its client says how many permits it begins with. Sets
-- the locals `available` (see available.lua) and `created`.
--
-- KEYS[1]  the counter
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it

--@include permits/available
local created = not available and ARGV[1] ~= ''
if created then
  available = tonumber(ARGV[1])
  redis.call('SET', KEYS[1], available)
end
