-- Answers an owner that finds the lock taken: by itself, because the command was sent
-- twice, or by another owner. A read-write lock under this name is refused: its readers
-- and writers would not see this holder.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[1]  owner
-- Needs the local `digits`.

if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    --@include granted_before
  end
  if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE a read-write lock')
  end
  return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }
end
