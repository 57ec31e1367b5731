-- Registers a runner at its address, for the first time or again, and gives it a machine id: that
-- of its address, else the lowest free one. An id is free when its runner holds no shard, and has
-- unregistered or been silent for longer than a pause (ARGV[4]). If none is free, the runner
-- without shards that has been silent the longest loses its id. Idempotent: sent twice it answers
-- with the same id.
--
-- KEYS[1]  the runners, a hash { address = state }; a state is the time until which the runner
--          counts as alive (epoch milliseconds, 13 digits), then "1" if it is healthy, "0" if not,
--          "-" if it has unregistered; and, each after a space, its machine id, its process
--          and the runner itself
-- KEYS[2]  the shards, a hash { shard = lease } and { lease = state }: a shard is held while its lease
--          lasts. A lease is named by its address, process and epoch, with spaces between; its state
--          is the time until which it lasts (epoch milliseconds, 13 digits), and after a space how
--          many shards it covers: as many as name it. It has no more shards than at first, is
--          deleted with its last one, and never comes back
-- ARGV[1]  address
-- ARGV[2]  process
-- ARGV[3]  lease, milliseconds
-- ARGV[4]  how long a runner that no longer counts as alive keeps its machine id, milliseconds
-- ARGV[5]  how many machine ids there are
-- ARGV[6]  "1" if it is healthy, else "0"
-- ARGV[7]  the runner, encoded
-- ARGV[last]  the server time until which this may take effect, epoch milliseconds
--
-- reply    the machine id, from 1 up; 0 if all belong to runners that are alive or hold shards

--@include deadline
local now = math.floor(micros / 1000)
local entry = redis.call('HGET', KEYS[1], ARGV[1])
local id = entry and tonumber(string.match(entry, '^%d+%S (%d+)'))

if not id then
  local holding = {}
  local shards = redis.call('HGETALL', KEYS[2])
  for i = 1, #shards, 2 do
    local held_until = string.match(shards[i + 1], '^(%d+) %d+$')
    if held_until and tonumber(held_until) > now then
      holding[string.match(shards[i], '^(.*) ')] = true
    end
  end
  local taken = {}
  local count = 0
  local silent, silent_until, silent_id
  local runners = redis.call('HGETALL', KEYS[1])
  for i = 1, #runners, 2 do
    local alive_until, health, used, process = string.match(runners[i + 1], '^(%d+)(%S) (%d+) (%S+)')
    alive_until = tonumber(alive_until)
    local holds = holding[runners[i] .. ' ' .. process]
    if not holds and (health == '-' or alive_until + ARGV[4] <= now) then
      redis.call('HDEL', KEYS[1], runners[i])
    else
      taken[tonumber(used)] = true
      count = count + 1
      if not holds and alive_until <= now and (not silent or alive_until < silent_until) then
        silent, silent_until, silent_id = runners[i], alive_until, tonumber(used)
      end
    end
  end
  if count < tonumber(ARGV[5]) then
    id = 1
    while taken[id] do
      id = id + 1
    end
  elseif silent then
    redis.call('HDEL', KEYS[1], silent)
    id = silent_id
  else
    return 0
  end
end

redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. ARGV[6] .. ' ' .. id .. ' ' .. ARGV[2] .. ' ' .. ARGV[7])
local life = ARGV[3] + ARGV[4]
if redis.call('PTTL', KEYS[1]) < life then
  redis.call('PEXPIRE', KEYS[1], life)
end
return id
