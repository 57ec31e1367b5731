-- Removes a record that this owner has written, whether or not it still holds the lock.
--
-- KEYS[1]  the lock
-- KEYS[2]  the record (see write.lua), and its channel
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH if sharded pub/sub is in use
--
-- reply    1 removed, 0 there is no record of this owner

local owner = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) ')
if owner ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[2])
redis.pcall(ARGV[2], KEYS[2], '0')
return 1
