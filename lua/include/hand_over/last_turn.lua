-- Sets the local `since` to the microseconds since the last turn of the clients that take
-- no places: huge if they had none. The time of that turn is stored among the places as the
-- score of the member '', plus `behind_all`, so that it sorts behind every place.
--
-- Needs the locals `digits` and `places`, the key of the places (see hand_over.lua).

local behind_all = 4000000000000000
local last_turn = redis.call('ZSCORE', places, '')
local since = last_turn and digits - (last_turn - behind_all) or behind_all
if since < 0 then
  -- the clock has stepped back
  since = behind_all
end
