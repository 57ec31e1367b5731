-- Defines leave_queue(owner), which removes the place of an owner, if it has one, and
-- returns whether it had. A place in the middle is found within one command.
--
-- KEYS[3]  the queue, a list of owners
-- KEYS[4]  { owner = epoch milliseconds at which Redisson considers it dead }, a zset
-- KEYS[5]  { client = epoch milliseconds until which it is alive; owner = its secret }, a zset

local function leave_queue(owner)
  if redis.call('ZREM', KEYS[4], owner) == 0 then
    return false
  end
  redis.call('LREM', KEYS[3], 1, owner)
  redis.call('ZREM', KEYS[5], owner)
  return true
end
