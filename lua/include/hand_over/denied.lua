-- Replies to an owner that is denied, and gives it a place if it will wait.
--
-- Needs the locals `digits` and `micros`; `places`, the key of the places, or false or nil (see
-- hand_over.lua); `place`, its place; `place_age`, how long ago its client was first denied since
-- it was last let in, microseconds; `denial`, the reply but for the server time.

if places then
  -- a client that was passed over, or whose place a failover has lost, does not begin again at the end
  local since = place_age == '0' and digits or string.format('%.0f', micros - place_age)
  -- pcall: a full server (OOM) still replies that the lock is held
  -- LT: a place from before the clock stepped back must not be behind all new ones
  redis.pcall('ZADD', places, 'LT', since, place)
  -- they expire a minute after the last request
  redis.call('PEXPIRE', places, 60000)
end
return { denial[1], denial[2], digits }
