-- Takes a free lock as Redisson's RFencedLock does: its token is a counter without expiry.
-- Idempotent: sent twice for an owner that has not asked before it answers
-- with the same grant.
--
-- KEYS[1]  the lock, a hash { owner = hold count }
-- KEYS[2]  the counter, shared with RFencedLock
-- KEYS[3]  the places (see hand_over.lua); only here for an owner that will wait
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- with KEYS[3] only:
-- ARGV[3]  1 if this owner has asked before, else 0
-- ARGV[4]  how old its place is (see hand_over/denied.lua), microseconds
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: { 'granted', the fencing token, server time in microseconds }
--          denied:  { milliseconds left (-1: no expiry), the holder's owner,
--                     server time in microseconds }

--@include deadline
local has_asked = KEYS[3] and ARGV[3] == '1'
local place_age = ARGV[4]
--@include hand_over/taken
--@include tokens/next_token
local token, refusal = next_token(KEYS[1], KEYS[2], '')
if not token then
  return refusal
end
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { 'granted', token, digits }
