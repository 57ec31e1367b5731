-- Takes a free lock for one owner, or tells how long the present holder still has.
-- Idempotent: sent twice for the same owner it answers with the same grant.
--
-- KEYS[1]  the lock, a hash { owner = hold count } (Redisson's RLock)
-- KEYS[2]  the last fencing token of this name
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last token is remembered, milliseconds
--
-- reply    granted: the fencing token, an integer
--          taken:   { milliseconds left (-1: no expiry), the holder's owner }

if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }
  end
  return tonumber(redis.call('GET', KEYS[2]) or 1)
end

-- Server time keeps tokens rising when Redis restarts empty, the last token keeps
-- them rising when the server's clock steps back.
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local last = redis.call('GET', KEYS[2])
if last and tonumber(last) >= token then
  token = last + 1
end
local text = string.format('%.0f', token)
if last and redis.call('PTTL', KEYS[2]) == -1 then
  -- a counter without expiry belongs to Redisson's RFencedLock: it stays without
  redis.call('SET', KEYS[2], text)
else
  redis.call('SET', KEYS[2], text, 'PX', ARGV[3])
end

redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return token
