-- Keeps the places of all waiters of one client: notes that the client is alive, and
-- postpones the time at which Redisson would consider them dead. A waiter that was
-- considered dead meanwhile gets a new place at the end. Places of the client at which
-- nobody waits any more are removed when they come to the head, or all at once.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive }, a zset
-- ARGV[1]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[2]  Redisson's fairLockWaitTimeout, milliseconds
-- ARGV[3]  client
-- ARGV[4]  how long the client counts as alive after this, milliseconds
-- ARGV[5]  how long ago the last refresh was, milliseconds
-- ARGV[6]  the number of the client's last owner: it has none with a higher number yet
-- ARGV[7]  1 to remove all places of the client at which nobody waits, else 0
-- ARGV[8]  how many of the owners wait; the others are asking at this moment
-- ARGV[..] owners that wait, in their order; then owners that are asking
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    { milliseconds that the holder has left (-1: no expiry, -2: free),
--            the head of the queue or nil, milliseconds until the head counts as dead };
--          { -2, owner, 0 } if a waiter holds the lock and does not know it

--@include deadline
local patience = tonumber(ARGV[2])
local last_waiting = 8 + ARGV[8]
local own = {}
for i = 9, #ARGV - 1 do
  own[ARGV[i]] = own[ARGV[i]] or (i <= last_waiting and 'waits' or 'asks')
end
if next(own) then
  local clock = redis.call('TIME')
  local millis = clock[1] * 1000 + math.floor(clock[2] / 1000)
  redis.call('ZADD', KEYS[5], millis + ARGV[4], ARGV[3])
  redis.call('ZADD', KEYS[5], 'NX', millis, 'seen')
  redis.call('PEXPIRE', KEYS[5], 86400000)
end
--@include skip_the_dead
local function is_left(owner)
  return string.sub(owner, 1, 36) == ARGV[3]
    and not own[owner]
    and (tonumber(string.sub(owner, 38)) or math.huge) <= tonumber(ARGV[6])
end
while head and is_left(head) do
  redis.call('LPOP', KEYS[3])
  redis.call('ZREM', KEYS[4], head)
  head = redis.call('LINDEX', KEYS[3], 0)
end
if ARGV[7] == '1' then
  local removed = 0
  local stay = {}
  for _, owner in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if is_left(owner) then
      removed = removed + 1
      redis.call('ZREM', KEYS[4], owner)
    else
      stay[#stay + 1] = owner
      if removed > 0 then
        -- those behind them get their turn earlier, by their time
        redis.call('ZADD', KEYS[4], 'XX', 'INCR', -patience * removed, owner)
      end
    end
  end
  if removed > 0 then
    redis.call('DEL', KEYS[3])
    for _, owner in ipairs(stay) do
      redis.call('RPUSH', KEYS[3], owner)
    end
  end
end
--@include queue_up
local holder = redis.call('HKEYS', KEYS[1])[1]
for i = 9, last_waiting do
  if ARGV[i] == holder then
    -- has its turn
  elseif redis.call('ZSCORE', KEYS[4], ARGV[i]) then
    redis.call('ZINCRBY', KEYS[4], ARGV[5], ARGV[i])
  else
    queue_up(ARGV[i])
  end
end
head = redis.call('LINDEX', KEYS[3], 0)
if not head then
  -- no client is noted while nobody has a place: whoever gets one is noted then
  redis.call('DEL', KEYS[4], KEYS[5])
elseif not next(own) then
  redis.call('ZREM', KEYS[5], ARGV[3])
end
if holder and own[holder] == 'waits' then
  return { -2, holder, 0 }
end
local left = redis.call('PTTL', KEYS[1])
if not head then
  return { left, false, 0 }
end
if left == -2 and head ~= first then
  -- it has no other way to learn that its turn has come
  redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')
end
local due = tonumber(redis.call('ZSCORE', KEYS[4], head))
local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))
return { left, head, math.max(0, math.min(due, tonumber(alive or due)) - now) }
