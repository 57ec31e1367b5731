-- Answers an owner that holds the lock already, because the command was sent twice: with
-- the token that it was granted.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- Needs the local `digits`.
--
-- reply    { 'granted', token, server time in microseconds }

local token = KEYS[2] == KEYS[1] and 0 or tonumber(redis.call('GET', KEYS[2]) or 1) or 1
return { 'granted', token, digits }
