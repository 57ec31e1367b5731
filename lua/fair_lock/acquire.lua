-- Acquires a free lock for the owner that is next in the queue; any other owner that is
-- willing to wait gets a place in the queue, or keeps the one it has. Sent twice
-- it grants once, with another token.
--
-- KEYS[1]  the lock, a hash { owner = hold count } (Redisson's RLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive; owner = its secret }, a zset
-- KEYS[6]  its channel; each waiter subscribes to its own: <channel>:<owner>
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last token is remembered, milliseconds
-- ARGV[4]  Redisson's fairLockWaitTimeout, milliseconds; 0 to try once, without a place
-- ARGV[5]  client
-- ARGV[6]  how long the client counts as alive after this, milliseconds
-- ARGV[7]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[8]  a secret of this owner, a number (see fair/skip_the_dead.lua)
-- ARGV[9]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the fencing token (see include/tokens/granted.lua)
--          not:     { milliseconds that the holder has left (-1: no expiry, -2: free),
--                     the holder; if the lock is free, the head of the queue }

--@include deadline
--@include fair/skip_the_dead
if first and not head then
  redis.call('DEL', KEYS[4], KEYS[5])
end
local waiter_timeout = tonumber(ARGV[4])
local holder = head
--@include tokens/next_token
if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    -- an owner that retries, unaware of its grant, counts the lease from now; it gets another
    -- token, as the release of a holder without tokens has minted none
    local token, foreseen = next_token(KEYS[1], KEYS[2], ARGV[3])
    if not token then
      return foreseen
    end
    local left = redis.call('PTTL', KEYS[1])
    if left >= 0 and left < tonumber(ARGV[2]) then
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
    end
    --@include tokens/granted
  end
  if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE a read-write lock')
  end
  holder = redis.call('HKEYS', KEYS[1])[1]
elseif not head or head == ARGV[1] then
  local token, foreseen = next_token(KEYS[1], KEYS[2], ARGV[3])
  if not token then
    return foreseen
  end
  if head then
    --@include fair/leave_queue
    leave_queue(head)
    head = redis.call('LINDEX', KEYS[3], 0)
  end
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if head then
    --@include fair/keep_front
    keep_front(waiter_timeout)
  else
    redis.call('DEL', KEYS[4], KEYS[5])
  end
  --@include tokens/granted
elseif head ~= first then
  -- nothing else tells the new head that it is next
  redis.pcall(ARGV[7], KEYS[6] .. ':' .. head, '0')
end

if waiter_timeout > 0 then
  --@include fair/queue_up
  queue_up(ARGV[1])
  redis.call('ZADD', KEYS[5], now + ARGV[6], ARGV[5], now, 'seen', ARGV[8], ARGV[1])
  --@include fair/keep_clients
end
return { redis.call('PTTL', KEYS[1]), holder }
