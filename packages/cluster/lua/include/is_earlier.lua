-- Whether something is the name of a lease that the owner was granted by a request up to a number. Names begin with the
-- owner and the request's number: see lease_shards.lua.
--
-- ARGV[3]  the number
-- Needs the local `owner`, which ends with a space.

local function is_earlier(lease)
  return lease
    and string.sub(lease, 1, #owner) == owner
    and tonumber(string.match(lease, '^%d+', #owner + 1)) <= tonumber(ARGV[3])
end
