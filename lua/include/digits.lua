-- Sets the local `digits` to the server time in microseconds, and `time` to the reply of
-- TIME. Concatenated, not computed: formatting a number of this length costs as much as a
-- command.

local time = redis.call('TIME')
local digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
