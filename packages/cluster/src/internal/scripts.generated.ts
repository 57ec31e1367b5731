// Generated from packages/cluster/lua/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
  "runner_storage/acquire": {
    name: "runner_storage/acquire",
    hasDeadline: true,
    sha1: "6387c78a7faabd6984c3a79f47842dece6e8fa3e",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal owner = ARGV[1] .. ' ' .. ARGV[2]\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal is_registered = entry and string.sub(entry, 14, 14) ~= '-'\nif is_registered and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then\n  return -1\nend\nlocal first_shard = 4\nlocal function may_have(lock)\n  return not lock or tonumber(string.sub(lock, 1, 13)) <= now or string.sub(lock, 15) == owner\nend\nlocal refused = {}\nlocal leased = now + ARGV[3] .. ' ' .. owner\nlocal seen, is_granted\nfor first = first_shard, #ARGV - 1, 1000 do\n  local last = math.min(first + 999, #ARGV - 1)\n  local granted = {}\n  for i, lock in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, first, last))) do\n    if lock ~= seen then\n      seen = lock\n      is_granted = may_have(lock)\n    end\n    if is_granted then\n      granted[#granted + 1] = ARGV[first + i - 1]\n      granted[#granted + 1] = leased\n    else\n      refused[#refused + 1] = first + i - first_shard\n    end\n  end\n  if #granted > 0 then\n    redis.call('HSET', KEYS[2], unpack(granted))\n  end\nend\nif redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[2], ARGV[3])\nend\nreturn refused"
  },
  "runner_storage/refresh": {
    name: "runner_storage/refresh",
    hasDeadline: true,
    sha1: "0f8e3c11c20e7be79845b5ea578c506a36c34988",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal owner = ARGV[1] .. ' ' .. ARGV[2]\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal is_registered = entry and string.sub(entry, 14, 14) ~= '-'\nif is_registered and string.match(entry, '^%d+%S %d+ (%S+)') ~= ARGV[2] then\n  return -1\nend\nif is_registered then\n  redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. string.sub(entry, 14))\n  local life = ARGV[3] + ARGV[4]\n  if redis.call('PTTL', KEYS[1]) < life then\n    redis.call('PEXPIRE', KEYS[1], life)\n  end\nend\nlocal first_shard = 5\nlocal function may_have(lock)\n  return lock and tonumber(string.sub(lock, 1, 13)) > now and string.sub(lock, 15) == owner\nend\nlocal refused = {}\nlocal leased = now + ARGV[3] .. ' ' .. owner\nlocal seen, is_granted\nfor first = first_shard, #ARGV - 1, 1000 do\n  local last = math.min(first + 999, #ARGV - 1)\n  local granted = {}\n  for i, lock in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, first, last))) do\n    if lock ~= seen then\n      seen = lock\n      is_granted = may_have(lock)\n    end\n    if is_granted then\n      granted[#granted + 1] = ARGV[first + i - 1]\n      granted[#granted + 1] = leased\n    else\n      refused[#refused + 1] = first + i - first_shard\n    end\n  end\n  if #granted > 0 then\n    redis.call('HSET', KEYS[2], unpack(granted))\n  end\nend\nif redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[2], ARGV[3])\nend\nreturn refused"
  },
  "runner_storage/register": {
    name: "runner_storage/register",
    hasDeadline: true,
    sha1: "e3f403220d66683870d87bbd36ff64cd78ed8aa6",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal now = math.floor(micros / 1000)\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal id = entry and tonumber(string.match(entry, '^%d+%S (%d+)'))\nif not id then\n  local holding = {}\n  local locks = redis.call('HVALS', KEYS[2])\n  for _, lock in ipairs(locks) do\n    if tonumber(string.sub(lock, 1, 13)) > now then\n      holding[string.sub(lock, 15)] = true\n    end\n  end\n  local taken = {}\n  local count = 0\n  local silent, silent_until, silent_id\n  local runners = redis.call('HGETALL', KEYS[1])\n  for i = 1, #runners, 2 do\n    local alive_until, health, used, process = string.match(runners[i + 1], '^(%d+)(%S) (%d+) (%S+)')\n    alive_until = tonumber(alive_until)\n    local holds = holding[runners[i] .. ' ' .. process]\n    if not holds and (health == '-' or alive_until + ARGV[4] <= now) then\n      redis.call('HDEL', KEYS[1], runners[i])\n    else\n      taken[tonumber(used)] = true\n      count = count + 1\n      if not holds and alive_until <= now and (not silent or alive_until < silent_until) then\n        silent, silent_until, silent_id = runners[i], alive_until, tonumber(used)\n      end\n    end\n  end\n  if count < tonumber(ARGV[5]) then\n    id = 1\n    while taken[id] do\n      id = id + 1\n    end\n  elseif silent then\n    redis.call('HDEL', KEYS[1], silent)\n    id = silent_id\n  else\n    return 0\n  end\nend\nredis.call('HSET', KEYS[1], ARGV[1], now + ARGV[3] .. ARGV[6] .. ' ' .. id .. ' ' .. ARGV[2] .. ' ' .. ARGV[7])\nlocal life = ARGV[3] + ARGV[4]\nif redis.call('PTTL', KEYS[1]) < life then\n  redis.call('PEXPIRE', KEYS[1], life)\nend\nreturn id"
  },
  "runner_storage/release": {
    name: "runner_storage/release",
    hasDeadline: true,
    sha1: "0effaa8c01f082d5c499f9bbb7e765e0b1c6df40",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal lock = redis.call('HGET', KEYS[1], ARGV[3])\nif lock and string.sub(lock, 15) == ARGV[1] .. ' ' .. ARGV[2] then\n  return redis.call('HDEL', KEYS[1], ARGV[3])\nend\nreturn 0"
  },
  "runner_storage/release_all": {
    name: "runner_storage/release_all",
    hasDeadline: true,
    sha1: "05070987f3af51669578d63dd8b4c8fcbbe815f2",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal owner = ARGV[1] .. ' ' .. ARGV[2]\nlocal locks = redis.call('HGETALL', KEYS[1])\nlocal held = {}\nfor i = 1, #locks, 2 do\n  if string.sub(locks[i + 1], 15) == owner then\n    held[#held + 1] = locks[i]\n  end\nend\nfor first = 1, #held, 1000 do\n  redis.call('HDEL', KEYS[1], unpack(held, first, math.min(first + 999, #held)))\nend\nreturn #held"
  },
  "runner_storage/runners": {
    name: "runner_storage/runners",
    hasDeadline: false,
    sha1: "1d04ca608db045143d996d69db603685f9e1b0fe",
    lua: "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal alive = {}\nfor _, entry in ipairs(redis.call('HVALS', KEYS[1])) do\n  local alive_until, health, id, runner = string.match(entry, '^(%d+)(%S) (%d+) %S+ (.*)$')\n  if health ~= '-' and tonumber(alive_until) > now then\n    alive[#alive + 1] = { tonumber(id), runner, tonumber(health) }\n  end\nend\ntable.sort(alive, function(one, other)\n  return one[1] < other[1]\nend)\nlocal reply = {}\nfor i, runner in ipairs(alive) do\n  reply[2 * i - 1] = runner[2]\n  reply[2 * i] = runner[3]\nend\nreturn reply"
  },
  "runner_storage/set_health": {
    name: "runner_storage/set_health",
    hasDeadline: true,
    sha1: "5c0b23b7d5a6f16ee3de4085dff9782fca0bcf87",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nif not entry or string.sub(entry, 14, 14) == '-' then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[1], string.sub(entry, 1, 13) .. ARGV[2] .. string.sub(entry, 15))\nreturn 1"
  },
  "runner_storage/unregister": {
    name: "runner_storage/unregister",
    hasDeadline: true,
    sha1: "19ff6014fbf2549f4e0746437764bd25b8e49484",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal entry = redis.call('HGET', KEYS[1], ARGV[1])\nlocal process = entry and string.match(entry, '^%d+%S %d+ (%S+)')\nif process ~= ARGV[2] then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[1], string.sub(entry, 1, 13) .. '-' .. string.sub(entry, 15))\nreturn 1"
  }
} as const
