-- Takes all free permits. If the counter is below zero it is raised to zero, as in
-- Redisson and in Java's Semaphore. An expiry of the counter stays as it is.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids of a permit semaphore of this name
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it
-- ARGV[2]  the server time until which this may take effect, epoch milliseconds
--
-- reply    how many were free, perhaps below zero; 0 if there is no semaphore

--@include deadline
--@include permits/anonymous
--@include permits/begin
if not available or available == 0 then
  return 0
end
redis.call('INCRBY', KEYS[1], -available)
return available
