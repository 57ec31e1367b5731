-- Takes permits, one for each id, all or none. Idempotent: sent twice for the same ids it
-- takes once.
--
-- KEYS[1]  the permits that are free, a string (Redisson's RPermitExpirableSemaphore)
-- KEYS[2]  { permit id, 16 raw bytes = epoch milliseconds at which its lease ends }, a zset
-- KEYS[3]  the channel
-- KEYS[4], KEYS[5] and six more arguments are only here for a client that takes places:
-- KEYS[4]  the places (see include/permit_places/place_at.lua)
-- KEYS[5]  what they want
-- ARGV[1]  how many permits the semaphore begins with, or '' not to create it
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
-- ARGV[4]  the client
-- ARGV[5]  how many permits it wants to be told of if it is denied these; 0: it will not wait
-- ARGV[6]  for how long it has waited for them, milliseconds
-- ARGV[7]  how many its other fibers want if it is granted these; 0: none of them waits
-- ARGV[8]  for how long they have waited, milliseconds
-- ARGV[9]  1 for a fiber that does not wait yet (see include/permit_places/take_place.lua)
-- ARGV[10..]  the ids, 32 hexadecimal digits each; from ARGV[4] on without KEYS[4]
-- ARGV[last] the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: { 1, how many permits are free now, -1 }
--          denied:  { 0, how many are free and not kept for others, milliseconds until the
--                     next lease ends (-1: none does) or until it may ask again, how many
--                     are held or kept (-1: there is no such semaphore) }

--@include deadline
--@include permits/begin_leased
--@include permits/raw
local publish, channel, places, wants = ARGV[3], KEYS[3], KEYS[4], KEYS[5]
local me, if_denied, denied_waited = ARGV[4], ARGV[5], ARGV[6]
local if_granted, granted_waited, is_new = ARGV[7], ARGV[8], ARGV[9]
local first = places and 10 or 4
local wanted_now = #ARGV - first
local expiry = redis.call('ZSCORE', KEYS[2], raw(ARGV[first]))
local sent = expiry and tonumber(expiry) > now
--@include permit_places/kept
local granted = sent or not expiry and available and available - kept >= wanted_now
if granted and not sent then
  -- the ids first: if the script gets no further, they can be given back
  expiry = now + ARGV[2]
  for i = first, #ARGV - 1 do
    redis.call('ZADD', KEYS[2], expiry, raw(ARGV[i]))
  end
  available = redis.call('INCRBY', KEYS[1], -wanted_now)
  -- Redisson's rule: the ids expire when the counter does
  local life = redis.call('PTTL', KEYS[1])
  if life > 0 then
    redis.call('PEXPIRE', KEYS[2], life)
  end
end
local has_ids = true
--@include permit_places/take_place
if (created or reaped > 0) and available then
  --@include permit_places/tell
end
if granted then
  return { 1, available or 0, -1 }
end
local next = redis.call('ZRANGE', KEYS[2], 0, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
next = next and tonumber(next)
-- 922337203685477 is Redisson's "never"
if left < 0 and next and next < 922337203685477 then
  left = math.max(0, next - now)
end
return {
  0,
  available and available - kept or 0,
  left,
  available and redis.call('ZCARD', KEYS[2]) + kept or -1
}
