-- Takes a free read-write lock for a writer, or replies how long it is taken; a writer that
-- will wait gets a place among those that a release hands the lock to. A writer that finds readers and is going to
-- wait may announce itself; readers of this library then let it go first. Behind another
-- writer it announces nothing: when that one is done, readers get the same chance as
-- writers, or writers in a loop would keep them out. Idempotent.
--
-- KEYS[1]  the lock, a hash { mode = read | write, <reader> = holds, <writer>:write = holds }
--          (Redisson's RReadWriteLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  { client with a waiting writer = epoch milliseconds until which it counts }, a zset of ours
-- KEYS[4]  { reader = epoch milliseconds at which the last of its holds ends }, a zset of ours
-- KEYS[5]  the places (see hand_over_sides.lua); only here for a writer that will wait for a
--          lock that is handed over
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last token is remembered, milliseconds
-- ARGV[4]  client
-- ARGV[5]  for how long to hold off readers when others read, milliseconds; 0 not at all
-- ARGV[6]  a lower bound for the token, or ''
-- ARGV[7]  with KEYS[5] only: 1 if this owner has asked before, else 0
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the fencing token (see include/tokens/granted.lua)
--          taken:   { milliseconds left (-1: no expiry), a holder's owner }

--@include deadline
local places = KEYS[5]
local has_asked = places and ARGV[7] == '1'
local field = ARGV[1] .. ':write'
local denial
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode then
  local is_held = redis.call('HEXISTS', KEYS[1], field) == 1
  if is_held and not has_asked then
    --@include tokens/granted_before
  end
  if mode == 'read' then
    if ARGV[5] ~= '0' then
      redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5], ARGV[4])
      if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[5]) then
        redis.call('PEXPIRE', KEYS[3], ARGV[5])
      end
    end
    -- the reader that is noted to hold the longest
    local reader = redis.call('ZRANGE', KEYS[4], -1, -1)[1]
    if not reader or redis.call('HEXISTS', KEYS[1], reader) == 0 then
      -- or any other
      local fields = redis.call('HRANDFIELD', KEYS[1], 2)
      reader = fields[1] ~= 'mode' and fields[1] or fields[2] or ''
    end
    denial = { redis.call('PTTL', KEYS[1]), reader }
  elseif not is_held then
    local holder = ''
    for _, other in ipairs(redis.call('HKEYS', KEYS[1])) do
      if string.sub(other, -6) == ':write' then
        holder = string.sub(other, 1, -7)
        break
      elseif other ~= 'mode' then
        holder = other
      end
    end
    denial = { redis.call('PTTL', KEYS[1]), holder }
  end
elseif redis.call('EXISTS', KEYS[1], places or KEYS[1]) > 0 then
  -- nearly always neither exists, which costs one command
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE a lock, but no read-write lock')
  end
  --@include hand_over/last_turn
  if since < 10000 then
    denial = { math.ceil((10000 - since) / 1000), '' }
  elseif has_asked then
    redis.call('ZREM', places, field)
  end
end
if denial then
  --@include hand_over/denied
end

local at_least = ARGV[6]
--@include tokens/next_token
redis.call('HSET', KEYS[1], 'mode', 'write', field, '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[4])
--@include tokens/granted
