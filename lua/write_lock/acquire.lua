-- Acquires a free read-write lock for a writer, or replies how long it remains held. A writer
-- that will wait gets a place in the hand-over queue, and later readers wait behind it (see
-- older_writer.lua). Idempotent.
--
-- KEYS[1]  the lock, a hash { mode = read | write, <reader> = holds, <writer>:write = holds }
--          (Redisson's RReadWriteLock)
-- KEYS[2]  the last fencing token of this name; or the lock again for a lock without tokens
-- KEYS[3]  { reader = epoch milliseconds at which its lease ends }, our own zset
-- KEYS[4]  the places (see hand_over_sides.lua)
-- ARGV[1]  owner
-- ARGV[2]  lease, milliseconds
-- ARGV[3]  how long the last token is remembered, milliseconds
-- ARGV[4]  a lower bound for the token, or ''
-- ARGV[5]  for a writer that will wait: its owner where the lock is handed over; elsewhere its
--          client, under which all its requests have one place; '' for any other
-- ARGV[6]  1 if this owner has asked before, else 0
-- ARGV[7]  how old its place is (see hand_over/denied.lua), microseconds
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    granted: the fencing token (see include/tokens/granted.lua)
--          denied:  { milliseconds left (-1: no expiry), a holder's owner,
--                     server time in microseconds }

--@include deadline
local places = ARGV[5] ~= '' and KEYS[4]
local has_asked = ARGV[6] == '1'
local place_age = ARGV[7]
local field = ARGV[1] .. ':write'
local place = ARGV[5] .. ':write'
local denial
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode then
  local is_held = redis.call('HEXISTS', KEYS[1], field) == 1
  if is_held and not has_asked then
    --@include tokens/granted_before
  end
  if mode == 'read' then
    -- the reader that is noted to hold the longest
    local reader = redis.call('ZRANGE', KEYS[3], -1, -1)[1]
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
  if turn_left > 0 and place == field then
    denial = { math.ceil(turn_left / 1000), '' }
  else
    redis.call('ZREM', places, place, place .. ':asked')
  end
end
if denial then
  if places then
    -- pcall: a full server (OOM) still replies that the lock is held
    redis.pcall('ZADD', places, string.format('%.0f', micros + 4000000000000000), place .. ':asked')
  end
  --@include hand_over/denied
end

--@include tokens/next_token
local token, foreseen = next_token(KEYS[1], KEYS[2], ARGV[3], ARGV[4])
if not token then
  return foreseen
end
redis.call('HSET', KEYS[1], 'mode', 'write', field, '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
--@include tokens/granted
