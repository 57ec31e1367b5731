-- Gives back permits whose lease has ended, at most a thousand, or as many as the command has
-- arguments, one for each permit that it asks for: later commands do the rest.
-- Sets the locals `now` (epoch milliseconds), `reaped` (how many), `ended` (how many more
-- have ended) and `available` (see available.lua), which does not include `ended`. Without
-- a counter the permits are dropped: there is nothing to return them to.
--
-- KEYS[1]  the counter
-- KEYS[2]  { permit id, 16 raw bytes = epoch milliseconds at which its lease ends }, a zset
-- Needs the local `time`, the server's, from the TIME command.

--@include permits/available
local now = time[1] * 1e3 + math.floor(time[2] / 1000)
local reaped = 0
local ended = redis.call('ZCOUNT', KEYS[2], 0, now)
if ended > 0 then
  -- a lease of Java that is so long that it overflows is negative, and never ends
  local endless = redis.call('ZCOUNT', KEYS[2], '-inf', '(0')
  reaped = redis.call('ZREMRANGEBYRANK', KEYS[2], endless, endless + math.min(ended, math.max(1000, #ARGV)) - 1)
  ended = ended - reaped
end
if available and reaped > 0 then
  available = redis.call('INCRBY', KEYS[1], reaped)
end
