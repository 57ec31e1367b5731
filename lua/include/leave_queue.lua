-- Defines leave_queue(owner), which removes the place of an owner, if it has one. Nobody
-- else's score is touched: see skip_the_dead. A place in the middle is looked for within one
-- command.
--
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset

local function leave_queue(owner)
  if redis.call('ZREM', KEYS[4], owner) == 1 then
    redis.call('LREM', KEYS[3], 1, owner)
  end
end
