-- Counts the permits; those whose lease has ended count as free.
--
-- KEYS[1]  the permits that are free
-- KEYS[2]  the ids, a zset
-- KEYS[3]  the channel
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    { free (nil: there is no semaphore), held }

--@include permits/reap
if reaped > 0 and available and available > 0 then
  redis.pcall(ARGV[1], KEYS[3], available)
end
return { available and available + ended, redis.call('ZCARD', KEYS[2]) - ended }
