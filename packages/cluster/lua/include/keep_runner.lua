-- Keeps a registered runner alive for one lease.
--
-- KEYS[1]  the runners, see register.lua
-- ARGV[1]  address
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  how long a runner that no longer counts as alive keeps its machine id, milliseconds
-- Needs the locals `now`, `entry` and `is_registered` (see registered_here.lua).

if is_registered then
  redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. string.sub(entry, 14))
  local life = ARGV[3] + ARGV[4]
  if redis.call('PTTL', KEYS[1]) < life then
    redis.call('PEXPIRE', KEYS[1], life)
  end
end
