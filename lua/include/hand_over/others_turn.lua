-- Sets the local `is_others_turn`: whether clients that take no places (Redisson's) are
-- subscribed, and have had no turn for 100 ms. If so, clients with places are refused for the
-- next 10 ms (see taken.lua); they are told first, which saves them a futile request. The turn
-- lasts until then, even if an owner gives up its place meanwhile.
--
-- KEYS[2]  its channel; clients that take places also subscribe to <channel>:ours
-- ARGV[2]  PUBLISH, or SPUBLISH
-- Needs the locals `places`, the key of the places (see hand_over.lua), and `digits`.

local is_others_turn = false
local numsub = ARGV[2] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local counts = redis.pcall('PUBSUB', numsub, KEYS[2], KEYS[2] .. ':ours')
-- a user without permission for PUBSUB: there may be some
local others = counts[4] and counts[2] - counts[4] or 1
if others > 0 then
  --@include hand_over/last_turn
  is_others_turn = since >= 100000 or since < 10000
  if since >= 100000 then
    redis.call('ZADD', places, string.format('%.0f', digits + behind_all), '')
    if redis.call('ZRANGE', places, 0, 0)[1] == '' then
      redis.call('PEXPIRE', places, 100)
    end
  end
  if is_others_turn then
    redis.pcall(ARGV[2], KEYS[2] .. ':ours', '')
  end
end
