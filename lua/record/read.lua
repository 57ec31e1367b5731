-- Reads a record together with the lock beside it.
--
-- KEYS[1]  the lock
-- KEYS[2]  the record (see write.lua)
--
-- reply    { server time in microseconds, the holder of the lock or '', the record or nil }

--@include digits
return { digits, redis.call('HKEYS', KEYS[1])[1] or '', redis.call('GET', KEYS[2]) }
