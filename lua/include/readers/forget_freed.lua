-- Drops the notes about readers if the last reader noted no longer reads: another library has
-- freed the lock since, and the notes are about its former readers.
--
-- KEYS[1]  the lock
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset

local noted = redis.call('ZRANGE', KEYS[4], -1, -1)[1]
if noted and redis.call('HEXISTS', KEYS[1], noted) == 0 then
  redis.call('DEL', KEYS[4])
end
