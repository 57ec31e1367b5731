-- Hands a read-write lock over to the oldest place: to a writer if the lock is free; to a
-- reader, and the readers right behind it, also if it is held for reading. Each becomes a
-- holder for a short lease, with a token, and a message on its client's own channel tells it so
-- (see hand_over.lua). Owners whose clients are not subscribed lose their places, and so do
-- clients that are not handed the lock, whose places have no number (see
-- write_lock/acquire.lua): they ask in their turn. At most a hundred places are looked at. Sets
-- the local `is_handed_over`, also if the next is a writer that has to wait for readers.
--
-- KEYS[1]  the lock
-- KEYS[2]  its channel; each client also subscribes to <channel>:<client>
-- KEYS[3]  the stem of the holds' keys: <stem>:<owner>:rwlock_timeout:<number>
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- KEYS[5]  the places: { field that its hold will have in the hash = when it got its
--          place, microseconds }, our own zset. What has 4000000000000000 added to its score is no
--          place: { <field of a writer>:asked = when it last asked }, and '' (see last_turn.lua)
-- KEYS[6]  the last fencing token of this name; or the lock again for a lock without tokens
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  the lease, milliseconds
-- ARGV[4]  how long a writer's token is remembered, milliseconds
-- Needs the locals `time`, `digits` and `micros` (see digits.lua).

--@include tokens/next_token
--@include tokens/read_token
--@include hand_over/tell_owner
local until_then = time[1] * 1e3 + math.floor(time[2] / 1000) + ARGV[3]
local left = redis.call('PTTL', KEYS[1])
local is_read = left ~= -2
--@include readers/forget_freed
local looked_at = 0
local function oldest()
  return redis.call('ZRANGE', places, '-inf', '(4000000000000000', 'BYSCORE', 'LIMIT', 0, 1)[1]
end
local field = oldest()
while field and looked_at < 100 do
  local is_writer = string.sub(field, -6) == ':write'
  if is_writer and is_read then
    is_handed_over = true
    break
  end
  looked_at = looked_at + 1
  redis.call('ZREM', places, field, field .. ':asked')
  local client, number = string.match(field, '^(.-):(%d+)')
  if number and hears(client, is_writer and '1' or '0') then
    is_handed_over = true
    redis.call('HSET', KEYS[1], 'mode', is_writer and 'write' or 'read', field, '1')
    if left < tonumber(ARGV[3]) and (left ~= -1 or not is_read) then
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      left = tonumber(ARGV[3])
    end
    if is_writer then
      tell(client, '1', number, (next_token(KEYS[1], KEYS[6], ARGV[4])))
      break
    end
    is_read = true
    redis.call('SET', KEYS[3] .. ':' .. field .. ':rwlock_timeout:1', 1, 'PX', ARGV[3])
    redis.call('ZADD', KEYS[4], until_then, field)
    redis.call('PEXPIRE', KEYS[4], math.max(left, tonumber(ARGV[3])))
    tell(client, '0', number, (read_token(KEYS[1], KEYS[6])))
  end
  field = oldest()
end
if not field then
  -- nobody has a place
  redis.call('PEXPIRE', places, 100)
end
