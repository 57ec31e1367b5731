-- Takes a free lock for one owner, or replies how long the current holder's lease still
-- runs; an owner that will wait gets a place in the hand-over queue.
-- Idempotent: sent twice for an owner that has not asked before it answers
-- with the same grant.
--
-- KEYS[1]  the lock, a hash { owner = hold count } (Redisson's RLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  the places (see hand_over.lua); only here for an owner that will wait for a lock
--          that is handed over
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last token is remembered, milliseconds
-- ARGV[4]  a lower bound for the token, or ''; may be left out where ARGV[5] is
-- with KEYS[3] only, and may be left out:
-- ARGV[5]  1 if this owner has asked before, else 0
-- ARGV[6]  how old its place is (see hand_over/denied.lua), microseconds
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the fencing token (see include/tokens/granted.lua)
--          denied:  { milliseconds left (-1: no expiry), the holder's owner,
--                     server time in microseconds }

--@include deadline
local has_asked = KEYS[3] and ARGV[5] == '1'
local place_age = ARGV[6] or '0'
--@include hand_over/taken
--@include tokens/next_token
local token, foreseen = next_token(KEYS[1], KEYS[2], ARGV[3], ARGV[5] and ARGV[4])
if not token then
  return foreseen
end
redis.call('HSET', KEYS[1], ARGV[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
--@include tokens/granted
