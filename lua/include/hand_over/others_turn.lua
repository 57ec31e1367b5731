-- Sets the local `is_others_turn`: whether clients that take no places (Redisson's) are
-- subscribed, and have their turn, or had none for 90 ms. During a turn, clients with places are
-- refused (see taken.lua); they are told first, and for how many milliseconds, which saves them a
-- futile request. The turn lasts until then, even if an owner gives up its place meanwhile.
--
-- KEYS[2]  its channel; clients that take places also subscribe to <channel>:ours
-- ARGV[2]  PUBLISH, or SPUBLISH
-- Needs the locals `places`, the key of the places (see hand_over.lua), `digits` and `micros`.

local is_others_turn = false
local numsub = ARGV[2] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local counts = redis.pcall('PUBSUB', numsub, KEYS[2], KEYS[2] .. ':ours')
-- a user without permission for PUBSUB: there may be some
local others = counts[4] and counts[2] - counts[4] or 1
if others > 0 then
  --@include hand_over/last_turn
  if turn_left <= -90000 then
    --@include turn/begin
    redis.call('ZADD', places, string.format('%.0f', micros + turn_left + behind_all), '')
    if redis.call('ZRANGE', places, 0, 0)[1] == '' then
      redis.call('PEXPIRE', places, turn_left / 1000 + 90)
    end
  end
  if turn_left > 0 then
    is_others_turn = true
    redis.pcall(ARGV[2], KEYS[2] .. ':ours', math.ceil(turn_left / 1000))
  end
end
