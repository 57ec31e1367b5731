-- Defines note_reader(readers, owner, lock, lease): notes for a reader that is noted
-- already that it holds until `lease` milliseconds from now, unless a later time is noted.
-- Any other reader is not noted, as its lease might end later. The notes live as long as the
-- lock.
--
-- Needs the local `time`, the server's, from the TIME command.

local now = time[1] * 1e3 + math.floor(time[2] / 1000)
local function note_reader(readers, owner, lock, lease)
  redis.call('ZADD', readers, 'XX', 'GT', now + lease, owner)
  redis.call('PEXPIRE', readers, math.max(lease, redis.call('PTTL', lock)))
end
