-- Takes a free read-write lock for a writer. A writer that finds readers and is going to
-- wait may announce itself; readers of this library then let it go first. Behind another
-- writer it announces nothing: when that one is done, readers get the same chance as
-- writers, or writers in a loop would keep them out. Idempotent.
--
-- KEYS[1]  the lock, a hash { mode = read | write, <reader> = holds, <writer>:write = holds }
--          (Redisson's RReadWriteLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  { client with a waiting writer = epoch milliseconds until which it counts }, a zset of ours
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last token is remembered, milliseconds
-- ARGV[4]  client
-- ARGV[5]  for how long to hold off readers when others read, milliseconds; 0 not at all
-- ARGV[6]  a lower bound for the token, or ''
-- ARGV[7]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the fencing token (see include/tokens/granted.lua)
--          taken:   { milliseconds left (-1: no expiry), a holder's owner }

--@include deadline
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode then
  if redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 1 then
    --@include tokens/granted_before
  end
  if ARGV[5] ~= '0' and mode == 'read' then
    redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5], ARGV[4])
    if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[5]) then
      redis.call('PEXPIRE', KEYS[3], ARGV[5])
    end
  end
  if mode == 'read' then
    -- the reader that is noted to hold the longest
    local reader = redis.call('ZRANGE', KEYS[4], -1, -1)[1]
    if not reader or redis.call('HEXISTS', KEYS[1], reader) == 0 then
      -- or any other
      local fields = redis.call('HRANDFIELD', KEYS[1], 2)
      reader = fields[1] ~= 'mode' and fields[1] or fields[2] or ''
    end
    return { redis.call('PTTL', KEYS[1]), reader }
  end
  local holder = ''
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(field, -6) == ':write' then
      holder = string.sub(field, 1, -7)
      break
    elseif field ~= 'mode' then
      holder = field
    end
  end
  return { redis.call('PTTL', KEYS[1]), holder }
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')
end

local at_least = ARGV[6]
--@include tokens/next_token
redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[4])
--@include tokens/granted
