-- Extends many locks at once, each only if its owner still holds it. Compare and
-- extend: nothing is ever created, no deadline is ever lowered.
--
-- KEYS[i]    a lock
-- ARGV[1]    lease, milliseconds; 0 to write nothing
-- ARGV[i+1]  the owner of KEYS[i]
-- ARGV[..]   only if each has a lease of its own: these leases, in place of ARGV[1]
--
-- reply      per key: 1 extended, 0 not held by this owner
--@urgent

--@include extend
local has_own = #ARGV > #KEYS + 1
local replies = {}
for i, lock in ipairs(KEYS) do
  -- pcall: a foreign type at one name must not stop the others
  if redis.pcall('HEXISTS', lock, ARGV[i + 1]) == 1 then
    extend(lock, has_own and ARGV[#KEYS + 1 + i] or ARGV[1])
    replies[i] = 1
  else
    replies[i] = 0
  end
end
return replies
