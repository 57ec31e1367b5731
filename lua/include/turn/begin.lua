-- Sets `turn_left` (see left.lua) to how long a turn lasts that begins now. Clients that take no
-- places ask when they have heard of a release, so the turn has to outlast their round trip. A
-- turn lasts 10 ms, which is enough for those nearby; so that distant ones get in as well, the
-- first of each second lasts 50 ms, and the first of each ten seconds 250 ms. The last one began
-- at least 10 ms before it ended.
--
-- Needs the locals `micros` and `turn_left`.

local since_last = 10000 - turn_left
turn_left = micros % 1e7 < since_last and 250000 or micros % 1e6 < since_last and 50000 or 10000
