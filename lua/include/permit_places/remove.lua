-- Defines `remove(client)`: takes its place away, and returns 1, or 0 if it had none. After the last place
-- `wants` has no more than the time of the last turn, which counts for a third of a second.
--
-- Needs the locals `places` and `wants` (see place_at.lua).

local function remove(client)
  local removed = redis.call('ZREM', places, client)
  redis.call('HDEL', wants, client)
  if redis.call('EXISTS', places) == 0 then
    redis.call('PEXPIRE', wants, 340)
  end
  return removed
end
