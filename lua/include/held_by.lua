-- Defines held_by(suffix): whether the lock is held by one of the given owners; true if none
-- is given.
--
-- KEYS[1]  the lock
-- ARGV[2..last-1]  the owners

local function held_by(suffix)
  for i = 2, #ARGV - 1 do
    if redis.call('HEXISTS', KEYS[1], ARGV[i] .. suffix) == 1 then
      return true
    end
  end
  return #ARGV == 2
end
