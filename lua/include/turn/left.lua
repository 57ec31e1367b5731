-- Sets the local `turn_left` to the microseconds that are left of the turn of the clients that
-- take no places (Redisson's); negative: how long ago it ended. If they had none, the next may
-- begin.
--
-- Needs the locals `micros` and `turn_ends`, the server time in microseconds at which it ends,
-- or false.

local turn_left = turn_ends and turn_ends - micros or -90000
if turn_left > 250000 then
  -- longer than any turn: the clock has stepped back
  turn_left = -90000
end
