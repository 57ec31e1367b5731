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
local last = redis.call('SET', KEYS[2], token, 'PX', ARGV[3], 'GET')
if last then
  last = tonumber(last)
  if last < 1000000000000000 then
    -- no time but the counter of a FencedLock or of Redisson's RFencedLock: it
    -- counts by one and has no expiry
    token = last + 1
    redis.call('SET', KEYS[2], token)
  elseif last >= token then
    token = last + 1
    redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
  end
end

redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return token
