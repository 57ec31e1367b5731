-- Sets the local `turn_left` (see turn/left.lua). The time at which the turn ends is stored
-- among the places as the score of the member '', plus `behind_all`, so that it sorts behind
-- every place.
--
-- Needs the locals `micros` and `places`, the key of the places (see hand_over.lua).

local behind_all = 4000000000000000
local last_turn = redis.call('ZSCORE', places, '')
local turn_ends = last_turn and last_turn - behind_all
--@include turn/left
