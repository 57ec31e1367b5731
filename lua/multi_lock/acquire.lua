-- Takes several free locks for one owner, all or none. Idempotent.
--
-- KEYS     per lock: the lock, a hash { owner = hold count } (Redisson's RLock), and the
--          last fencing token of its name
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last tokens are remembered, milliseconds
--
-- reply    granted: { 1, the token of each lock }
--          not:     { 0, which lock is taken (from 0), milliseconds it has left (-1: no
--                     expiry), its holder }

-- everything is read before anything is written: what is of a foreign type ends the script
local last_tokens = {}
for i = 1, #KEYS, 2 do
  last_tokens[i] = tonumber(redis.call('GET', KEYS[i + 1]) or 0)
  if redis.call('EXISTS', KEYS[i]) == 1 and redis.call('HEXISTS', KEYS[i], ARGV[1]) == 0 then
    if redis.call('HEXISTS', KEYS[i], 'mode') == 1 then
      return redis.error_reply('WRONGTYPE a read-write lock')
    end
    return { 0, (i - 1) / 2, redis.call('PTTL', KEYS[i]), redis.call('HKEYS', KEYS[i])[1] }
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = { 1 }
for i = 1, #KEYS, 2 do
  local token = now
  local last = last_tokens[i]
  if redis.call('EXISTS', KEYS[i]) == 1 then
    token = last
  else
    -- as in include/next_token
    if last > 0 and last < 1000000000000000 then
      token = last + 1
      redis.call('SET', KEYS[i + 1], token)
    else
      token = math.max(now, last + 1)
      redis.call('SET', KEYS[i + 1], token, 'PX', ARGV[3])
    end
    redis.call('HSET', KEYS[i], ARGV[1], 1)
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
  reply[#reply + 1] = token
end
return reply
