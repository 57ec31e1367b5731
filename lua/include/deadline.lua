-- Refuses a command that arrives too late: its sender has given up, so nobody would own
-- what it creates. The command may have been delayed in a connection that broke, while the
-- release that rolls it back went over the next one. Sets the locals `time`, `digits` and
-- `micros` (see digits.lua); the refusal includes the server time.
--
-- ARGV[last]  the server time until which the command may take effect, epoch milliseconds

--@include digits
if micros > ARGV[#ARGV] * 1e3 then
  return redis.error_reply('LATE ' .. digits)
end
