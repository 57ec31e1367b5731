-- Replies to an owner that is denied, and gives it a place if it will wait.
--
-- Needs the locals `digits`; `places`, the key of the places, or false or nil (see hand_over.lua);
-- `place`, its place; `denial`, the reply but for the server time.

if places then
  -- pcall: a full server (OOM) still replies that the lock is held
  -- LT: a place from before the clock stepped back must not be behind all new ones
  redis.pcall('ZADD', places, 'LT', digits, place)
  -- they expire a minute after the last request
  redis.call('PEXPIRE', places, 60000)
end
return { denial[1], denial[2], digits }
