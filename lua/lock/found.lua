-- Tells what is under a name that is not a lock of the kind asked for.
--
-- KEYS[1]  the name
--
-- reply    the type of the value as Redis names it, or `read-write lock`

local type = redis.call('TYPE', KEYS[1]).ok
if type == 'hash' and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return 'read-write lock'
end
return type
