-- Sets the local `is_others_turn`: whether somebody listens who takes no places (Redisson)
-- and has had no chance for 100 ms. Clients of ours are told first, and leave the lock
-- alone for a moment.
--
-- KEYS[2]  its channel; clients of ours that take places listen to <channel>:ours as well
-- KEYS[4]  there for 100 ms after such a chance, a string of ours
-- ARGV[2]  PUBLISH, or SPUBLISH

local numsub = ARGV[2] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local listeners = redis.pcall('PUBSUB', numsub, KEYS[2], KEYS[2] .. ':ours')
-- who may not ask cannot know
local others = listeners[4] and listeners[2] - listeners[4] or 1
local is_others_turn = others > 0 and redis.call('SET', KEYS[4], '', 'PX', 100, 'NX')
if is_others_turn then
  redis.pcall(ARGV[2], KEYS[2] .. ':ours', '')
end
