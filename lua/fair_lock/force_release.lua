-- Releases the lock, regardless of its holder, and wakes the head of the queue. A value
-- of another type is refused, not deleted.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each waiter subscribes to its own: <channel>:<owner>
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive; owner = its secret }, a zset
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2..] the owners from which to take it; none to take it from any
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    1 it was held, 0 it was free, or held by others

--@include deadline
if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return redis.error_reply('WRONGTYPE a read-write lock')
end
--@include held_by
if not held_by('') then
  return 0
end
-- a full server (OOM) refuses commands that may need memory, but only until the script has
-- written: this removes nothing
redis.call('ZREM', KEYS[5], '')
--@include fair/skip_the_dead
if not head then
  redis.call('DEL', KEYS[4], KEYS[5])
end
local existed = redis.call('DEL', KEYS[1])
if existed == 1 and head then
  redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')
end
return existed
