-- Takes a share for a reader. Granted while nobody writes, unless a writer has waited longer;
-- or if the reader itself is the writer. A reader that will wait gets a place in the
-- hand-over queue. Idempotent.
--
-- KEYS[1]  the lock, a hash { mode = read | write, <reader> = holds, <writer>:write = holds }
--          (Redisson's RReadWriteLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  this reader's lease, a string that lives as long
-- KEYS[4]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- KEYS[5]  the places (see hand_over_sides.lua)
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  the owner of the write lock that the reader has, or ''
-- ARGV[4]  its token
-- ARGV[5]  to let writers go first that have waited longer: for how long this reader has
--          waited, microseconds; '' to enter before all of them
-- ARGV[6]  for a reader that will wait for a lock that is handed over: 1 if this owner has
--          asked before, else 0; '' for any other
-- ARGV[7]  how old its place is (see hand_over/denied.lua), microseconds
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the token of the last writer; if none is on record, one that is lower
--          than the next writer's; 0 for a lock without tokens; for the writer itself, ARGV[4],
--          as a server of a quorum may have stored a token that was granted to nobody
--          not:     { milliseconds left (-1: no expiry), the writer's owner, or the client of
--                     a waiting writer, server time in microseconds }

--@include deadline
local mode = redis.call('HGET', KEYS[1], 'mode')
local left = redis.call('PTTL', KEYS[1])
if not mode and left ~= -2 then
  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')
end
local mine = ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[3] .. ':write') == 1
local is_new = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
if is_new then
  local places = ARGV[6] ~= '' and KEYS[5]
  local denial
  if mode == 'write' and not mine then
    for _, other in ipairs(redis.call('HKEYS', KEYS[1])) do
      if string.sub(other, -6) == ':write' then
        denial = { left, string.sub(other, 1, -7) }
        break
      end
    end
  elseif not mode and places then
    --@include hand_over/last_turn
    if turn_left > 0 then
      denial = { math.ceil(turn_left / 1000), '' }
    end
  end
  if not denial and ARGV[5] ~= '' and not mine then
    --@include hand_over/older_writer
  end
  if denial then
    local place, place_age = ARGV[1], ARGV[7]
    --@include hand_over/denied
  end
  if places and ARGV[6] == '1' then
    redis.call('ZREM', places, ARGV[1])
  end
end

local token = tonumber(ARGV[4])
if not mine or KEYS[2] == KEYS[1] then
  --@include tokens/read_token
  local refusal
  token, refusal = read_token(KEYS[1], KEYS[2])
  if not token then
    return refusal
  end
end

if is_new then
  --@include readers/forget_freed
  if not mode then
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('ZADD', KEYS[4], 0, ARGV[1])
end
redis.call('SET', KEYS[3], 1, 'PX', ARGV[2])
if left < tonumber(ARGV[2]) and left ~= -1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
--@include readers/note_reader
note_reader(KEYS[4], ARGV[1], KEYS[1], tonumber(ARGV[2]))
return token
