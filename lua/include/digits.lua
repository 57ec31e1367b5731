-- Sets the locals `time`, the server's reply to TIME; `digits`, the time in microseconds as
-- text; and `micros`, as a number. The text is concatenated, not computed: formatting a number
-- of this length costs as much as a command.

local time = redis.call('TIME')
local digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
-- two short numbers are parsed faster than a long one
local micros = time[1] * 1e6 + time[2]
