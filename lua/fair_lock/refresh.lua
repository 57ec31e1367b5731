-- Notes that a client is alive, which keeps the places of all its waiters. A reported
-- waiter that has lost its place (it counted as dead, or the server lost it) gets a new
-- one at the end. Removes the places of owners that no longer wait. The cost of a refresh
-- does not depend on how many wait.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive; owner = its secret }, a zset
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2]  Redisson's fairLockWaitTimeout, milliseconds
-- ARGV[3]  client
-- ARGV[4]  how long the client counts as alive after this, milliseconds; 0 if none of its
--          owners waits
-- ARGV[5]  1 if the reported owners start with the client's first waiter, else 0: if the
--          client counted as dead, no other waiter gets a new place before that one
-- ARGV[6]  how many of the owners wait
-- ARGV[..] owners that wait, in their order; then owners whose places are to be removed
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    { milliseconds that the holder has left (-1: no expiry, -2: free),
--            the head of the queue or nil, milliseconds until the head counts as dead,
--            the holder or nil,
--            1 if the client counted as dead or was not noted, so that it may have lost
--            places, else 0 }
-- Urgent: sent a second time, as to a server that does not know the script, it would give a
-- place back to an owner that was served in between.
--@urgent

--@include deadline
local waiter_timeout = tonumber(ARGV[2])
local last_waiting = 6 + ARGV[6]
local before = redis.call('LINDEX', KEYS[3], 0)
local noted = tonumber(redis.call('ZSCORE', KEYS[5], ARGV[3]))
local millis = time[1] * 1e3 + math.floor(time[2] / 1000)
-- later than now if the clock was set back: its waiters may have been passed over until then
local last_run = math.max(millis, tonumber(redis.call('ZSCORE', KEYS[5], 'seen') or 0))
-- a full server (OOM) refuses commands that may need memory, but only until the script has
-- written: this removes nothing
redis.call('ZREM', KEYS[5], '')
if ARGV[4] ~= '0' then
  redis.call('ZADD', KEYS[5], millis + ARGV[4], ARGV[3])
  redis.call('ZADD', KEYS[5], 'NX', millis, 'seen')
else
  -- dead: a place that it still has was made by a command that came late
  redis.call('ZADD', KEYS[5], 0, ARGV[3])
end
--@include fair/keep_clients
for i = 3, 4 do
  -- Redisson's getMultiLock gives a lease to the queue as well, and leaves it there after the release
  local left = redis.call('PTTL', KEYS[i])
  if left >= 0 and left < 43200000 then
    redis.call('PEXPIRE', KEYS[i], 86400000)
  end
end
--@include fair/leave_queue
--@include fair/give_up
for i = last_waiting + 1, #ARGV - 1 do
  give_up(ARGV[i])
end
--@include fair/skip_the_dead
--@include fair/queue_up
local holder = redis.call('HKEYS', KEYS[1])[1]
-- from a little before the time when other commands may pass over its waiters
local lost = noted and noted > last_run + 100 and 0 or 1
if lost == 0 or ARGV[5] == '1' then
  for i = 7, last_waiting do
    if ARGV[i] ~= holder then
      queue_up(ARGV[i])
    end
  end
end
--@include fair/keep_front
keep_front(0)
head = redis.call('LINDEX', KEYS[3], 0)
local left = redis.call('PTTL', KEYS[1])
if not head then
  -- without places no client is noted: taking a place notes it again
  redis.call('DEL', KEYS[4], KEYS[5])
  return { left, false, 0, holder or false, lost }
end
if left == -2 and head ~= before then
  -- nothing else tells the new head that it is next
  redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')
end
local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))
local ends = tonumber(alive or redis.call('ZSCORE', KEYS[4], head))
return { left, head, math.max(0, ends - now), holder or false, lost }
