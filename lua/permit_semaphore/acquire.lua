-- Takes permits, one for each id, all or none. Idempotent: sent twice for the same ids it
-- takes once.
--
-- KEYS[1]  the permits that are free, a string (Redisson's RPermitExpirableSemaphore)
-- KEYS[2]  { permit id, 16 raw bytes = epoch milliseconds at which its lease ends }, a zset
-- KEYS[3]  the channel
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[4..]  the ids, 32 hexadecimal digits each
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: { 1, how many permits are free now, -1 }
--          denied:  { 0, how many are free, milliseconds until the next lease ends (-1: none
--                     does), how many are held (-1: there is no such semaphore) }

--@include deadline
--@include permits/begin_leased
--@include permits/raw
local expiry = redis.call('ZSCORE', KEYS[2], raw(ARGV[4]))
local sent = expiry and tonumber(expiry) > now
local wanted = #ARGV - 4
local granted = sent or not expiry and available and available >= wanted
if granted and not sent then
  -- the ids first: if the script gets no further, they can be taken back
  expiry = now + ARGV[2]
  for i = 4, #ARGV - 1 do
    redis.call('ZADD', KEYS[2], expiry, raw(ARGV[i]))
  end
  available = redis.call('INCRBY', KEYS[1], -wanted)
  -- Redisson's rule: the ids expire when the counter does
  local life = redis.call('PTTL', KEYS[1])
  if life > 0 then
    redis.call('PEXPIRE', KEYS[2], life)
  end
end
if (created or reaped > 0) and available and available > 0 then
  -- pcall: a message is a hint
  redis.pcall(ARGV[3], KEYS[3], available)
end
if granted then
  return { 1, available or 0, -1 }
end
local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
next = next and tonumber(next)
-- 922337203685477 is Redisson's "never"
return {
  0,
  available or 0,
  next and next < 922337203685477 and math.max(0, next - now) or -1,
  available and redis.call('ZCARD', KEYS[2]) - ended or -1
}
