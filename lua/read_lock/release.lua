-- Gives back holds of a reader. While others read the lock lives as long as the
-- longest of their holds; readers whose holds have all run out do not keep it. A
-- writer's lease is never touched.
--
-- The keys of the other readers' holds are composed here, as in Redisson: only the
-- hash knows them, and they are in its slot.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- ARGV[1]  owner
-- ARGV[2]  how many holds remain
-- ARGV[3]  PUBLISH, or SPUBLISH where sharded pub/sub is in use; empty to wake nobody
--
-- reply    1 + how many clients were listening, where the lock came free: released
--          0 the lock is free, -1 it is held, but not by this reader

local function hold_key(owner, number)
  return KEYS[3] .. ':' .. owner .. ':rwlock_timeout:' .. number
end

local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not held then
  return -redis.call('EXISTS', KEYS[1])
end
local remain = tonumber(ARGV[2])
for number = remain + 1, held do
  redis.call('DEL', hold_key(ARGV[1], number))
end
if remain > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], remain)
else
  redis.call('HDEL', KEYS[1], ARGV[1])
end
if redis.call('HGET', KEYS[1], 'mode') == 'write' then
  return 1
end

local longest = 0
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  for number = 1, tonumber(fields[i + 1]) or 0 do
    longest = math.max(longest, redis.call('PTTL', hold_key(fields[i], number)))
  end
end
if longest > 0 then
  redis.call('PEXPIRE', KEYS[1], longest)
  return 1
end
redis.call('DEL', KEYS[1])
if ARGV[3] == '' then
  return 1
end
-- pcall: a message is a hint, and a user who may not send it has released all the same
local listeners = redis.pcall(ARGV[3], KEYS[2], '0')
return type(listeners) == 'number' and 1 + listeners or 1
