-- Adds a hold to a reader that holds already. The count is absolute, so a command that is
-- sent twice counts once. Neither the count nor a deadline is lowered: a command that was
-- given up may arrive after the command of a later hold.
--
-- KEYS[1]  the lock
-- KEYS[2]  the new hold, a string that lives as long as its lease
-- KEYS[3]  { reader = epoch milliseconds at which the last of its holds ends }, our own zset
-- ARGV[1]  owner
-- ARGV[2]  hold count
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  the server time until which this may take effect, epoch milliseconds
--
-- reply    1 held, 0 not held by this owner (nothing was written)

--@include deadline
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not held then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], math.max(held, tonumber(ARGV[2])))
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('SET', KEYS[2], 1, 'PX', ARGV[3])
end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
--@include readers/note_reader
note_reader(KEYS[3], ARGV[1], KEYS[1], tonumber(ARGV[3]))
return 1
