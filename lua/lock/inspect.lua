-- Looks at a lock without touching it.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name
--
-- reply    { milliseconds left (-1: no expiry, -2: free), last token or nil, { owner, hold count, ... } }

return { redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1]) }
