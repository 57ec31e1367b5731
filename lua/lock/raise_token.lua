-- Raises the last fencing token of a name: another server of a quorum has granted a
-- higher one.
--
-- KEYS[1]  the lock
-- KEYS[2]  the last fencing token of this name
-- ARGV[1]  the token
-- ARGV[2]  how long the last token is remembered, milliseconds; 0 (and for a counter):
--          without end
--
-- reply    1

local before = redis.call('GET', KEYS[2]) or 0
--@include tokens/last_token
if not last then
  return redis.error_reply(no_token .. KEYS[2])
end
if last < tonumber(ARGV[1]) then
  if ARGV[2] == '0' or tonumber(ARGV[1]) < 1000000000000000 then
    redis.call('SET', KEYS[2], ARGV[1])
  else
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
  end
end
return 1
