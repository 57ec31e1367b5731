-- Gives back the permits whose lease has ended. Sets the locals `now` (epoch milliseconds),
-- `reaped` (how many) and `available` (see available.lua), these included.
-- Without a counter they are dropped: there is nothing to return them to.
--
-- KEYS[1]  the counter
-- KEYS[2]  { permit id, 16 raw bytes = epoch milliseconds at which its lease ends }, a zset

--@include available
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- one command for any number of permits: nothing is unpacked
local reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)
if available and reaped > 0 then
  available = redis.call('INCRBY', KEYS[1], reaped)
end
