-- Reserves a free lock for the owner that has spun longest, for a second or more, unless one
-- had such a turn less than a second ago, or it is the turn of clients that take no places (see
-- others_turn.lua): it becomes the holder for half a second, within which its next request
-- grants it the lock. No message tells it. Sets `is_handed_over`, a local of the script.
--
-- Owners that spin are among the places with their time minus `before_all` as the score, so
-- that they sort before those that listen. While some of them wait, the member '~' has the
-- time of the last turn, minus twice as much.
--
-- KEYS[1]  the lock
-- KEYS[3]  the places (see hand_over.lua)

local first = redis.call('ZRANGE', KEYS[3], '-inf', '(0', 'BYSCORE', 'LIMIT', 0, 2, 'WITHSCORES')
if first[1] == '~' and not first[3] then
  redis.call('ZREM', KEYS[3], '~')
elseif first[1] then
  --@include digits
  local before_all = 4000000000000000
  local now = digits - before_all
  local since_turn = before_all
  local spinner = first[1]
  local spun_since = first[2]
  if spinner == '~' then
    since_turn = now - before_all - first[2]
    spinner = first[3]
    spun_since = first[4]
  end
  local places = KEYS[3]
  --@include hand_over/last_turn
  -- below zero: the clock has stepped back
  if since >= 10000 and now - spun_since >= 1000000 and (since_turn >= 1000000 or since_turn < 0) then
    is_handed_over = true
    redis.call('ZADD', KEYS[3], string.format('%.0f', now - before_all), '~')
    redis.call('ZREM', KEYS[3], spinner)
    redis.call('HSET', KEYS[1], spinner, '1')
    redis.call('PEXPIRE', KEYS[1], 500)
  end
end
