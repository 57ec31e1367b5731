-- Sets the local `since` to the microseconds since those who take no places last had their
-- turn: huge if they had none. It is noted among the places as the member '', whose score is
-- that time and `behind_all`, so that it comes behind every place.
--
-- KEYS[3]  the places (see hand_over.lua)
-- Needs the local `digits`.

local behind_all = 4000000000000000
local last_turn = redis.call('ZSCORE', KEYS[3], '')
local since = last_turn and digits - (last_turn - behind_all) or behind_all
if since < 0 then
  -- the clock has stepped back
  since = behind_all
end
