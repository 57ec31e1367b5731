-- Replies to a reader or a writer that is denied, and gives it a place if it will wait.
--
-- Needs the locals `digits`; `places`, the key of the places, or nil (see hand_over_sides.lua);
-- `field`, the one that its hold would have in the hash; `denial`, the reply.

if places then
  -- pcall: a full server (OOM) still tells that the lock is taken
  -- LT: a place that was taken before the clock stepped back must not be behind all new ones
  redis.pcall('ZADD', places, 'LT', digits, field)
  -- they expire a minute after the last request
  redis.call('PEXPIRE', places, 60000)
end
return denial
