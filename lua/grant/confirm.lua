-- Confirms that this server has grants, and writes one of them again as it is: WAIT on the
-- same connection then covers them all, as it waits for the last write of its own connection,
-- and replicas get what was written before in order.
--
-- KEYS[i]  what a grant has left: a lock, or the key of a hold or of a grant
-- ARGV[i]  h<field> of a hash, z<id> of a zset of permits (32 hexadecimal digits), or s for
--          a string
-- ARGV[#KEYS + i]  how long it must still last, milliseconds; 0 for whatever is left. A replica
--          that has taken over with the release that handed a lock over, but without the
--          command that was granted it, has it for the short lease of a hand-over
--
-- reply    for each: 1 it is there, and lasts for long enough; 0 otherwise

-- A full server (OOM) refuses commands that may need memory, but only until the script has
-- written: this removes nothing. pcall: a foreign type at one key must not stop the others.
redis.pcall('HDEL', KEYS[1], '')
--@include permits/raw
local replies = {}
local is_written = false
for i, key in ipairs(KEYS) do
  local kind, name = string.sub(ARGV[i], 1, 1), string.sub(ARGV[i], 2)
  local is_there = false
  if kind == 'h' then
    local held = redis.pcall('HGET', key, name)
    is_there = type(held) == 'string'
    if is_there and not is_written then
      redis.call('HSET', key, name, held)
    end
  elseif kind == 'z' then
    is_there = type(redis.pcall('ZSCORE', key, raw(name))) == 'string'
    if is_there and not is_written then
      -- a score that does not change is not a write
      redis.call('ZINCRBY', key, 1, raw(name))
      redis.call('ZINCRBY', key, -1, raw(name))
    end
  else
    local value = redis.pcall('GET', key)
    is_there = type(value) == 'string'
    if is_there and not is_written then
      redis.call('SET', key, value, 'KEEPTTL')
    end
  end
  is_written = is_written or is_there
  if is_there then
    local left = redis.call('PTTL', key)
    is_there = left == -1 or left >= tonumber(ARGV[#KEYS + i])
  end
  replies[i] = is_there and 1 or 0
end
return replies
