-- Sets `denial`, a local of the script, if a writer has an older place than this reader, and has
-- waited longer. Writers that wait ask at least every four seconds; each counts for five seconds
-- after its last request, so that one whose process has died or was stopped keeps readers out no
-- longer. At most a hundred writers are looked at.
--
-- KEYS[5]  the places (see hand_over_sides.lua)
-- ARGV[1]  the reader
-- ARGV[5]  for how long it has waited, microseconds
-- Needs the local `micros`.

local behind_all = 4000000000000000
local lasts = 5000000
-- not in the future: those were noted before the clock stepped back
local from = string.format('(%.0f', micros + behind_all - lasts)
local to = string.format('%.0f', micros + behind_all)
local asked = redis.call('ZRANGE', KEYS[5], from, to, 'BYSCORE', 'LIMIT', 0, 100, 'WITHSCORES')
local waits_since = asked[1] and tonumber(redis.call('ZSCORE', KEYS[5], ARGV[1]) or behind_all)
if asked[1] and ARGV[5] ~= '0' then
  waits_since = math.min(waits_since, micros - ARGV[5])
end
for i = 1, #asked, 2 do
  local writer = string.match(asked[i], '^(.+):asked$')
  local taken_at = writer and redis.call('ZSCORE', KEYS[5], writer)
  if taken_at and tonumber(taken_at) <= waits_since then
    local counts_until = asked[i + 1] - behind_all + lasts
    denial = { math.ceil((counts_until - micros) / 1000), string.sub(writer, 1, 36) }
    break
  end
end
