-- Reads keys, so that the server tells of the next change of each: a driver sends CLIENT
-- CACHING YES before a tracked script. One command reads them all, as Redis 7.0 notes all
-- KEYS anew with each command of a script that reads.
--
-- KEYS[i]  what holds a lock: at most 2000
--
-- reply    how many of them exist
--@tracked

return redis.call('EXISTS', unpack(KEYS))
