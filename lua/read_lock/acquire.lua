-- Takes a share for a reader. Granted while nobody writes, or if the reader itself is
-- the writer. A reader that will wait gets a place among those that a release hands the lock
-- to. Idempotent.
--
-- KEYS[1]  the lock, a hash { mode = read | write, <reader> = holds, <writer>:write = holds }
--          (Redisson's RReadWriteLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  this reader's first hold, a string that lives as long as its lease
-- KEYS[4]  { client with a waiting writer = epoch milliseconds until which it counts }, a zset of ours
-- KEYS[5]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- KEYS[6]  the places (see hand_over_sides.lua); only here for a reader that will wait for a
--          lock that is handed over
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  the owner of the write lock that the reader has, or ''
-- ARGV[4]  its token
-- ARGV[5]  1 to let waiting writers go first
-- ARGV[6]  with KEYS[6] only: 1 if this owner has asked before, else 0
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the token of the last writer; if none is on record, one that is lower
--          than the next writer's; 0 for a lock without tokens; for the writer itself, ARGV[4],
--          as a server of a quorum may have stored a token that was granted to nobody
--          not:     { milliseconds left (-1: no expiry), the writer's owner, or the client of
--                     a waiting writer }

--@include deadline
local mode = redis.call('HGET', KEYS[1], 'mode')
local left = redis.call('PTTL', KEYS[1])
if not mode and left ~= -2 then
  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')
end
local mine = ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[3] .. ':write') == 1
local is_new = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
if is_new then
  local places = KEYS[6]
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
    if since < 10000 then
      denial = { math.ceil((10000 - since) / 1000), '' }
    end
  end
  if not denial and ARGV[5] == '1' and not mine then
    local writer = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')
    if writer[1] then
      local wait = tonumber(writer[2]) - (time[1] * 1000 + math.floor(time[2] / 1000))
      if wait > 0 then
        denial = { wait, writer[1] }
      end
    end
  end
  if denial then
    local field = ARGV[1]
    --@include hand_over/denied
  end
  if places and ARGV[6] == '1' then
    redis.call('ZREM', places, ARGV[1])
  end
end

local token = tonumber(ARGV[4])
if KEYS[2] == KEYS[1] then
  token = 0
elseif not mine then
  local before = redis.call('GET', KEYS[2])
  if before then
    --@include tokens/last_token
    if not last then
      return redis.error_reply(no_token .. KEYS[2])
    end
    token = last
  else
    token = micros - 1
  end
end

if is_new then
  -- if a noted reader no longer reads, another library has freed the lock since
  local noted = redis.call('ZRANGE', KEYS[5], -1, -1)[1]
  if noted and redis.call('HEXISTS', KEYS[1], noted) == 0 then
    redis.call('DEL', KEYS[5])
  end
  if not mode then
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('ZADD', KEYS[5], 0, ARGV[1])
end
redis.call('SET', KEYS[3], 1, 'PX', ARGV[2])
if left < tonumber(ARGV[2]) and left ~= -1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
--@include readers/note_reader
note_reader(KEYS[5], ARGV[1], KEYS[1], tonumber(ARGV[2]))
return token
