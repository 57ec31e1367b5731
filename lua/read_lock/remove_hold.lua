-- Gives back one of several holds of a reader. The count is absolute, so a command that is
-- sent twice counts once. After its deadline it is refused, as it would end a hold that was
-- added since.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, our own zset
-- ARGV[1]  owner
-- ARGV[2]  how many holds remain, at least 1
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[4]  the number of the hold that ends: the newest takes its place (Redisson always
--          ends the newest, whose lease may differ)
-- ARGV[5]  the server time until which this may take effect, epoch milliseconds
--
-- reply    released: 1 + how many clients were told if the lock is free now, else 1
--          0 the lock is free, -1 it is held, but not by this reader

--@include deadline
local function hold_key(number)
  return KEYS[3] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. number
end

local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not held then
  return -redis.call('EXISTS', KEYS[1])
end
local remain = math.min(held, tonumber(ARGV[2]))
local moves = remain < held and tonumber(ARGV[4]) <= remain
local left = moves and redis.call('PTTL', hold_key(held))
-- first, as a full server (OOM) allows all writes of a script once it has removed something
redis.call('HDEL', KEYS[1], '')
for number = remain + 1, held do
  redis.call('DEL', hold_key(number))
end
if moves and left > 0 then
  redis.call('SET', hold_key(ARGV[4]), 1, 'PX', left)
elseif moves then
  redis.call('DEL', hold_key(ARGV[4]))
end
redis.call('HSET', KEYS[1], ARGV[1], remain)
local longest_own = 0
for number = 1, remain do
  longest_own = math.max(longest_own, redis.call('PTTL', hold_key(number)))
end
redis.call('ZADD', KEYS[4], 'XX', time[1] * 1e3 + math.floor(time[2] / 1000) + longest_own, ARGV[1])
--@include readers/end_read
-- pcall: a message is a hint; a user without permission to publish has still released
local listeners = redis.pcall(ARGV[3], KEYS[2], '0')
return type(listeners) == 'number' and 1 + listeners or 1
