-- Refuses a command that arrives too late: its sender has given up, so nobody would own
-- what it creates. The command may have been delayed in a connection that broke, while the
-- release that rolls it back went over the next one. The locals `digits` and `micros` are
-- the server time in microseconds, which the refusal includes.
--
-- ARGV[last]  the server time until which the command may take effect, epoch milliseconds

--@include digits
-- two short numbers are parsed faster than a long one
local micros = time[1] * 1e6 + time[2]
if micros > ARGV[#ARGV] * 1e3 then
  return redis.error_reply('LATE ' .. digits)
end
