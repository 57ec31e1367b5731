-- Keeps the places of all waiters of one client: tells that the client is alive, and
-- puts off the time at which Redisson would take them for dead. One that was taken
-- for dead meanwhile gets a new place at the end.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson takes it for dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive }, a zset
-- ARGV[1]  PUBLISH, or SPUBLISH where sharded pub/sub is in use
-- ARGV[2]  Redisson's fairLockWaitTimeout, milliseconds
-- ARGV[3]  client
-- ARGV[4]  how long the client is alive without another word, milliseconds
-- ARGV[5]  how long ago the last refresh was, milliseconds
-- ARGV[..] owners
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    { milliseconds that the holder has left (-1: no expiry, -2: free),
--            the head of the queue or nil, milliseconds until the head counts as dead }

--@include deadline
local clock = redis.call('TIME')
redis.call('ZADD', KEYS[5], clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[4], ARGV[3])
redis.call('PEXPIRE', KEYS[5], 86400000)
--@include skip_the_dead
local patience = tonumber(ARGV[2])
--@include queue_up
for i = 6, #ARGV - 1 do
  if redis.call('ZSCORE', KEYS[4], ARGV[i]) then
    redis.call('ZINCRBY', KEYS[4], ARGV[5], ARGV[i])
  else
    queue_up(ARGV[i])
  end
end
head = redis.call('LINDEX', KEYS[3], 0)
local left = redis.call('PTTL', KEYS[1])
if not head then
  return { left, false, 0 }
end
if left == -2 and head ~= first then
  -- it could not know that its turn has come
  redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')
end
local due = tonumber(redis.call('ZSCORE', KEYS[4], head))
local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))
return { left, head, math.max(0, math.min(due, tonumber(alive or due)) - now) }
