-- Server time in microseconds, as the local `digits`. Joined, not computed: to print so
-- long a number costs as much as a command.

local time = redis.call('TIME')
local digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
