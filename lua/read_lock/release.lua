-- Gives back a hold of a reader, or all. While others read, the lock lives as long as
-- the longest of their holds; readers whose holds have all run out do not keep it. A
-- writer's lease is never changed.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- ARGV[1]  owner
-- ARGV[2]  how many holds remain
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use; empty to wake nobody
-- ARGV[4]  the number of the hold that ends, if others remain: the newest takes its
--          place (Redisson always ends the newest, whose lease may differ)
--
-- reply    1 + how many clients were listening, if the lock is free now: released
--          0 the lock is free, -1 it is held, but not by this reader

local function hold_key(owner, number)
  return KEYS[3] .. ':' .. owner .. ':rwlock_timeout:' .. number
end

local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not held then
  return -redis.call('EXISTS', KEYS[1])
end
local remain = tonumber(ARGV[2])
local moves = remain < held and remain > 0 and tonumber(ARGV[4]) <= remain
local left = moves and redis.call('PTTL', hold_key(ARGV[1], held))
-- first, as a full server (OOM) allows all writes of a script once it has removed something
for number = remain + 1, held do
  redis.call('DEL', hold_key(ARGV[1], number))
end
if moves and left > 0 then
  redis.call('SET', hold_key(ARGV[1], ARGV[4]), 1, 'PX', left)
elseif moves then
  redis.call('DEL', hold_key(ARGV[1], ARGV[4]))
end
if remain > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], remain)
  local longest = 0
  for number = 1, remain do
    longest = math.max(longest, redis.call('PTTL', hold_key(ARGV[1], number)))
  end
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[4], 'XX', time[1] * 1000 + math.floor(time[2] / 1000) + longest, ARGV[1])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[4], ARGV[1])
end
if redis.call('HGET', KEYS[1], 'mode') == 'write' then
  return 1
end

--@include longest_read
local longest = longest_read(KEYS[3])
if longest > 0 then
  redis.call('PEXPIRE', KEYS[1], longest)
  redis.call('PEXPIRE', KEYS[4], longest)
  return 1
end
redis.call('DEL', KEYS[1], KEYS[4])
if ARGV[3] == '' then
  return 1
end
-- pcall: a message is a hint; a user without permission to publish has still released
local listeners = redis.pcall(ARGV[3], KEYS[2], '0')
return type(listeners) == 'number' and 1 + listeners or 1
