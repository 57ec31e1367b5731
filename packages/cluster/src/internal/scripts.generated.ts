// Generated from packages/cluster/lua/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
  "runner_storage/acquire": {
    name: "runner_storage/acquire",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "68ce033b756c4fcfd54daf57bbe423fd9b8d6960",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal owner = ARGV[1] .. ' ' .. ARGV[2]\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal is_registered = entry and string.sub(entry, 14, 14) ~= '-'\nif is_registered and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then\n  return -1\nend\nlocal first_shard = 5\nlocal takes_free = true\nlocal epoch = ARGV[first_shard - 1] .. '-' .. digits\nlocal prefix = owner .. ' '\nlocal lease = prefix .. epoch\nlocal reply = { epoch }\nlocal size = 0\nlocal counted = {}\nlocal may_take = { [false] = takes_free, [lease] = true }\nlocal last_until, left = {}, {}\nfor first = first_shard, #ARGV - 1, 1000 do\n  local fields = {}\n  local former_leases = redis.call('HMGET', KEYS[2], unpack(ARGV, first, math.min(first + 999, #ARGV - 1)))\n  for i, former in ipairs(former_leases) do\n    local shard = ARGV[first + i - 1]\n    if may_take[former] == nil then\n      local state = redis.call('HGET', KEYS[2], former)\n      if not state or tonumber(string.sub(state, 1, 13)) <= now then\n        may_take[former] = takes_free\n        redis.call('HDEL', KEYS[2], former)\n      elseif string.sub(former, 1, #prefix) == prefix then\n        may_take[former] = true\n        last_until[former] = string.sub(state, 1, 14)\n        left[former] = tonumber(string.sub(state, 15))\n      else\n        may_take[former] = false\n      end\n    end\n    if not may_take[former] then\n      reply[#reply + 1] = first + i - first_shard\n    elseif not counted[shard] then\n      counted[shard] = true\n      size = size + 1\n      if left[former] then\n        left[former] = left[former] - 1\n      end\n      fields[#fields + 1] = shard\n      fields[#fields + 1] = lease\n    end\n  end\n  if #fields > 0 then\n    redis.call('HSET', KEYS[2], unpack(fields))\n  end\nend\nfor former, count in pairs(left) do\n  if count > 0 then\n    redis.call('HSET', KEYS[2], former, last_until[former] .. count)\n  else\n    redis.call('HDEL', KEYS[2], former)\n  end\nend\nif size > 0 then\n  redis.call('HSET', KEYS[2], lease, now + ARGV[3] .. ' ' .. size)\nend\nif redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[2], ARGV[3])\nend\nreturn reply"
  },
  "runner_storage/extend": {
    name: "runner_storage/extend",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "a43e75fe35e5f4fe33cf44ad38aae4287d5c6393",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal owner = ARGV[1] .. ' ' .. ARGV[2]\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal is_registered = entry and string.sub(entry, 14, 14) ~= '-'\nif is_registered and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then\n  return -1\nend\nif is_registered then\n  redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. string.sub(entry, 14))\n  local life = ARGV[3] + ARGV[4]\n  if redis.call('PTTL', KEYS[1]) < life then\n    redis.call('PEXPIRE', KEYS[1], life)\n  end\nend\nlocal lease = owner .. ' ' .. ARGV[5]\nlocal state = redis.call('HGET', KEYS[2], lease)\nif not state or tonumber(string.sub(state, 1, 13)) <= now or string.sub(state, 15) ~= ARGV[6] then\n  return 0\nend\nredis.call('HSET', KEYS[2], lease, now + ARGV[3] .. ' ' .. ARGV[6])\nif redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[2], ARGV[3])\nend\nreturn 1"
  },
  "runner_storage/refresh": {
    name: "runner_storage/refresh",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "cc8addfe8efc277785c49b45b70f2905ea299791",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal owner = ARGV[1] .. ' ' .. ARGV[2]\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal is_registered = entry and string.sub(entry, 14, 14) ~= '-'\nif is_registered and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then\n  return -1\nend\nif is_registered then\n  redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. string.sub(entry, 14))\n  local life = ARGV[3] + ARGV[4]\n  if redis.call('PTTL', KEYS[1]) < life then\n    redis.call('PEXPIRE', KEYS[1], life)\n  end\nend\nlocal first_shard = 6\nlocal takes_free = false\nlocal epoch = ARGV[first_shard - 1] .. '-' .. digits\nlocal prefix = owner .. ' '\nlocal lease = prefix .. epoch\nlocal reply = { epoch }\nlocal size = 0\nlocal counted = {}\nlocal may_take = { [false] = takes_free, [lease] = true }\nlocal last_until, left = {}, {}\nfor first = first_shard, #ARGV - 1, 1000 do\n  local fields = {}\n  local former_leases = redis.call('HMGET', KEYS[2], unpack(ARGV, first, math.min(first + 999, #ARGV - 1)))\n  for i, former in ipairs(former_leases) do\n    local shard = ARGV[first + i - 1]\n    if may_take[former] == nil then\n      local state = redis.call('HGET', KEYS[2], former)\n      if not state or tonumber(string.sub(state, 1, 13)) <= now then\n        may_take[former] = takes_free\n        redis.call('HDEL', KEYS[2], former)\n      elseif string.sub(former, 1, #prefix) == prefix then\n        may_take[former] = true\n        last_until[former] = string.sub(state, 1, 14)\n        left[former] = tonumber(string.sub(state, 15))\n      else\n        may_take[former] = false\n      end\n    end\n    if not may_take[former] then\n      reply[#reply + 1] = first + i - first_shard\n    elseif not counted[shard] then\n      counted[shard] = true\n      size = size + 1\n      if left[former] then\n        left[former] = left[former] - 1\n      end\n      fields[#fields + 1] = shard\n      fields[#fields + 1] = lease\n    end\n  end\n  if #fields > 0 then\n    redis.call('HSET', KEYS[2], unpack(fields))\n  end\nend\nfor former, count in pairs(left) do\n  if count > 0 then\n    redis.call('HSET', KEYS[2], former, last_until[former] .. count)\n  else\n    redis.call('HDEL', KEYS[2], former)\n  end\nend\nif size > 0 then\n  redis.call('HSET', KEYS[2], lease, now + ARGV[3] .. ' ' .. size)\nend\nif redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[2], ARGV[3])\nend\nreturn reply"
  },
  "runner_storage/register": {
    name: "runner_storage/register",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "1aa2410ce4a1b8f1b2e3d98815d23967775d8ca1",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal id = entry and tonumber(string.match(entry, '^%d+%S (%d+)'))\nif not id then\n  local holding = {}\n  local shards = redis.call('HGETALL', KEYS[2])\n  for i = 1, #shards, 2 do\n    local held_until = string.match(shards[i + 1], '^(%d+) %d+$')\n    if held_until and tonumber(held_until) > now then\n      holding[string.match(shards[i], '^(.*) ')] = true\n    end\n  end\n  local taken = {}\n  local count = 0\n  local silent, silent_until, silent_id\n  local runners = redis.call('HGETALL', KEYS[1])\n  for i = 1, #runners, 2 do\n    local alive_until, health, used, process = string.match(runners[i + 1], '^(%d+)(%S) (%d+) (%S+)')\n    alive_until = tonumber(alive_until)\n    local holds = holding[runners[i] .. ' ' .. process]\n    if not holds and (health == '-' or alive_until + ARGV[4] <= now) then\n      redis.call('HDEL', KEYS[1], runners[i])\n    else\n      taken[tonumber(used)] = true\n      count = count + 1\n      if not holds and alive_until <= now and (not silent or alive_until < silent_until) then\n        silent, silent_until, silent_id = runners[i], alive_until, tonumber(used)\n      end\n    end\n  end\n  if count < tonumber(ARGV[5]) then\n    id = 1\n    while taken[id] do\n      id = id + 1\n    end\n  elseif silent then\n    redis.call('HDEL', KEYS[1], silent)\n    id = silent_id\n  else\n    return 0\n  end\nend\nredis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. ARGV[6] .. ' ' .. id .. ' ' .. ARGV[2] .. ' ' .. ARGV[7])\nlocal life = ARGV[3] + ARGV[4]\nif redis.call('PTTL', KEYS[1]) < life then\n  redis.call('PEXPIRE', KEYS[1], life)\nend\nreturn id"
  },
  "runner_storage/release": {
    name: "runner_storage/release",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "26eae5045b545b46d0eed25e0f249a40aeea764b",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal owner = ARGV[1] .. ' ' .. ARGV[2] .. ' '\nlocal function is_earlier(lease)\n  return lease\n    and string.sub(lease, 1, #owner) == owner\n    and tonumber(string.match(lease, '^%d+', #owner + 1)) <= tonumber(ARGV[3])\nend\nlocal lease = redis.call('HGET', KEYS[1], ARGV[4])\nif not is_earlier(lease) then\n  return 0\nend\nlocal state = redis.call('HGET', KEYS[1], lease)\nlocal left = state and string.sub(state, 15) - 1\nif left and left > 0 then\n  redis.call('HSET', KEYS[1], lease, string.sub(state, 1, 14) .. left)\nelseif left then\n  redis.call('HDEL', KEYS[1], lease)\nend\nreturn redis.call('HDEL', KEYS[1], ARGV[4])"
  },
  "runner_storage/release_all": {
    name: "runner_storage/release_all",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "44f6788b5567070f3e9b728a51c67169bf057ec3",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal owner = ARGV[1] .. ' ' .. ARGV[2] .. ' '\nlocal function is_earlier(lease)\n  return lease\n    and string.sub(lease, 1, #owner) == owner\n    and tonumber(string.match(lease, '^%d+', #owner + 1)) <= tonumber(ARGV[3])\nend\nlocal all = redis.call('HGETALL', KEYS[1])\nlocal released = 0\nlocal fields = {}\nfor i = 1, #all, 2 do\n  if is_earlier(all[i + 1]) then\n    released = released + 1\n    fields[#fields + 1] = all[i]\n  elseif is_earlier(all[i]) then\n    fields[#fields + 1] = all[i]\n  end\nend\nfor first = 1, #fields, 1000 do\n  redis.call('HDEL', KEYS[1], unpack(fields, first, math.min(first + 999, #fields)))\nend\nreturn released"
  },
  "runner_storage/runners": {
    name: "runner_storage/runners",
    isUrgent: false,
    isTracked: false,
    hasDeadline: false,
    sha1: "2d65749e0bdcde726fe66ba7605c7a5a51ec2e6e",
    lua: "local time = redis.call('TIME')\nlocal now = time[1] * 1e3 + math.floor(time[2] / 1000)\nlocal alive = {}\nfor _, entry in ipairs(redis.call('HVALS', KEYS[1])) do\n  local alive_until, health, id, runner = string.match(entry, '^(%d+)(%S) (%d+) %S+ (.*)$')\n  if health ~= '-' and tonumber(alive_until) > now then\n    alive[#alive + 1] = { tonumber(id), runner, tonumber(health) }\n  end\nend\ntable.sort(alive, function(one, other)\n  return one[1] < other[1]\nend)\nlocal reply = {}\nfor i, runner in ipairs(alive) do\n  reply[2 * i - 1] = runner[2]\n  reply[2 * i] = runner[3]\nend\nreturn reply"
  },
  "runner_storage/set_health": {
    name: "runner_storage/set_health",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "ad6f6718ed494461648c387248fbd3c6d22e7fd9",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nif not entry or string.sub(entry, 14, 14) == '-' then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[1], string.sub(entry, 1, 13) .. ARGV[2] .. string.sub(entry, 15))\nreturn 1"
  },
  "runner_storage/unregister": {
    name: "runner_storage/unregister",
    isUrgent: false,
    isTracked: false,
    hasDeadline: true,
    sha1: "42d900e8699f16d8c814751583535d57e611909f",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1e6 + time[2]\nif micros > ARGV[#ARGV] * 1e3 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal process = entry and string.match(entry, '^%d+%S %d+ (%S+)')\nif process ~= ARGV[2] then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[1], string.sub(entry, 1, 13) .. '-' .. string.sub(entry, 15))\nreturn 1"
  }
} as const
