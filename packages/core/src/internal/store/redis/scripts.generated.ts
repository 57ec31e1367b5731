// Generated from lua/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
  "latch/count": {
    name: "latch/count",
    sha1: "00d85e8542a392d818e8f5b46b2a8236fac83a66",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nreturn math.max(0, available or 0)"
  },
  "latch/count_down": {
    name: "latch/count_down",
    sha1: "20070115d005639d6488872e6670e57a0dcf9df8",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif not available then\n  return 0\nend\nlocal left = redis.call('DECR', KEYS[1])\nif left > 0 then\n  return left\nend\nredis.call('DEL', KEYS[1])\nif left == 0 then\n  redis.pcall(ARGV[1], KEYS[2], '0')\nend\nreturn 0"
  },
  "latch/delete": {
    name: "latch/delete",
    sha1: "cdd2c9417694411337ee6f0262cc0f67c304b89d",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif not available then\n  return 0\nend\nredis.call('DEL', KEYS[1])\nredis.pcall(ARGV[1], KEYS[2], '1')\nredis.pcall(ARGV[1], KEYS[2], '0')\nreturn 1"
  },
  "latch/set": {
    name: "latch/set",
    sha1: "225fa84ba8d6c012d6f4ab9de99ba053c1929a72",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif available then\n  return 0\nend\nredis.call('SET', KEYS[1], ARGV[1])\nredis.pcall(ARGV[2], KEYS[2], '1')\nreturn 1"
  },
  "lock/acquire": {
    name: "lock/acquire",
    sha1: "5ef8b10a98e3f9cb8df64ef36b042ceed40448c0",
    lua: "if redis.call('EXISTS', KEYS[1]) == 1 then\n  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then\n    return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }\n  end\n  return tonumber(redis.call('GET', KEYS[2]) or 1)\nend\nlocal time = redis.call('TIME')\nlocal token = time[1] * 1000000 + time[2]\nlocal last = redis.call('SET', KEYS[2], token, 'PX', ARGV[3], 'GET')\nif last then\n  last = tonumber(last)\n  if last < 1000000000000000 then\n    token = last + 1\n    redis.call('SET', KEYS[2], token)\n  elseif last >= token then\n    token = last + 1\n    redis.call('SET', KEYS[2], token, 'PX', ARGV[3])\n  end\nend\nredis.call('HSET', KEYS[1], ARGV[1], 1)\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn token"
  },
  "lock/force_release": {
    name: "lock/force_release",
    sha1: "d867675839ff60cb249e992f4c622459f0015fd8",
    lua: "local existed = redis.call('DEL', KEYS[1])\nif existed == 1 then\n  redis.pcall(ARGV[1], KEYS[2], '0')\nend\nreturn existed"
  },
  "lock/hold": {
    name: "lock/hold",
    sha1: "fad1dd87049f885ad855c79d3bfcff4eb83fec6c",
    lua: "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[1], ARGV[2])\nlocal left = redis.call('PTTL', KEYS[1])\nif left >= 0 and left < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[1], ARGV[3])\nend\nreturn 1"
  },
  "lock/inspect": {
    name: "lock/inspect",
    sha1: "02097ae48b82b5c05dbba1a280b8f2e6a4c0d2d6",
    lua: "return { redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1]) }"
  },
  "lock/release": {
    name: "lock/release",
    sha1: "ab1d88ae33fd4ac783c9f0829d38dc7963181e19",
    lua: "if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then\n  local listeners = redis.pcall(ARGV[2], KEYS[2], '0')\n  return type(listeners) == 'number' and 1 + listeners or 1\nend\nreturn -redis.call('EXISTS', KEYS[1])"
  },
  "lock/renew": {
    name: "lock/renew",
    sha1: "716385840c1aabb55cc649c5b20c49f91deed09f",
    lua: "local lease = tonumber(ARGV[1])\nlocal replies = {}\nfor i, lock in ipairs(KEYS) do\n  if redis.pcall('HEXISTS', lock, ARGV[i + 1]) == 1 then\n    local left = redis.call('PTTL', lock)\n    if left >= 0 and left < lease then\n      redis.call('PEXPIRE', lock, ARGV[1])\n    end\n    replies[i] = 1\n  else\n    replies[i] = 0\n  end\nend\nreturn replies"
  },
  "permit_semaphore/acquire": {
    name: "permit_semaphore/acquire",
    sha1: "7f42f22c83475ac48cd9ce1a8823efbcf59a86b7",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = ARGV[1] - redis.call('ZCARD', KEYS[2])\n  redis.call('SET', KEYS[1], available)\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal sent = redis.call('ZSCORE', KEYS[2], raw(ARGV[4]))\nlocal wanted = #ARGV - 3\nlocal granted = sent or available and available >= wanted\nif granted and not sent then\n  available = redis.call('DECRBY', KEYS[1], wanted)\n  local expiry = now + ARGV[2]\n  for i = 4, #ARGV do\n    redis.call('ZADD', KEYS[2], expiry, raw(ARGV[i]))\n  end\n  local life = redis.call('PTTL', KEYS[1])\n  if life > 0 then\n    redis.call('PEXPIRE', KEYS[2], life)\n  end\nend\nif (created or reaped > 0) and available and available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nif granted then\n  return { 1, available or 0, -1 }\nend\nlocal next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]\nnext = next and tonumber(next)\nreturn { 0, available or 0, next and next < 922337203685477 and next - now or -1 }"
  },
  "permit_semaphore/add": {
    name: "permit_semaphore/add",
    sha1: "039887feb59feb5810d4cc3f58bd8fbd92dcb26d",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = ARGV[1] - redis.call('ZCARD', KEYS[2])\n  redis.call('SET', KEYS[1], available)\nend\navailable = redis.call('INCRBY', KEYS[1], ARGV[2])\nif available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nreturn available"
  },
  "permit_semaphore/count": {
    name: "permit_semaphore/count",
    sha1: "bcec39a63e1d815a1ecf4629e2de3adc529285ba",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nif reaped > 0 and available and available > 0 then\n  redis.pcall(ARGV[1], KEYS[3], available)\nend\nreturn { available, redis.call('ZCARD', KEYS[2]) }"
  },
  "permit_semaphore/extend": {
    name: "permit_semaphore/extend",
    sha1: "6d33ea06ce90c1dc1252ab634ebc5d4c3b09c969",
    lua: "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal expiry = now + ARGV[1]\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nfor i = 2, #ARGV do\n  local score = redis.call('ZSCORE', KEYS[1], raw(ARGV[i]))\n  if not score or tonumber(score) <= now then\n    return 0\n  end\nend\nfor i = 2, #ARGV do\n  redis.call('ZADD', KEYS[1], 'GT', expiry, raw(ARGV[i]))\nend\nreturn 1"
  },
  "permit_semaphore/lease": {
    name: "permit_semaphore/lease",
    sha1: "33ba0efad14027081542319d7e18d09c90cc9221",
    lua: "local function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal score = redis.call('ZSCORE', KEYS[1], raw(ARGV[1]))\nif not score then\n  return -2\nend\nscore = tonumber(score)\nif score >= 922337203685477 then\n  return -1\nend\nlocal time = redis.call('TIME')\nlocal left = score - time[1] * 1000 - math.floor(time[2] / 1000)\nreturn left > 0 and left or -2"
  },
  "permit_semaphore/release": {
    name: "permit_semaphore/release",
    sha1: "cd36889e7d3b03ee1e1fc8c65276a8662d4e4187",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal removed = 0\nfor i = 2, #ARGV do\n  removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))\nend\nlocal listeners\nif available and removed > 0 then\n  available = redis.call('INCRBY', KEYS[1], removed)\n  listeners = available > 0 and redis.pcall(ARGV[1], KEYS[3], available)\nend\nif removed < #ARGV - 1 then\n  return -1\nend\nreturn type(listeners) == 'number' and 1 + listeners or 1"
  },
  "permit_semaphore/renew": {
    name: "permit_semaphore/renew",
    sha1: "27edd7e3ee21b9cc80537f196a0636115a6e6571",
    lua: "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal expiry = now + ARGV[1]\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal replies = {}\nfor i, permits in ipairs(KEYS) do\n  local held = 1\n  for id in string.gmatch(ARGV[i + 1], '%x+') do\n    local score = redis.pcall('ZSCORE', permits, raw(id))\n    if type(score) ~= 'string' or tonumber(score) <= now then\n      held = 0\n    end\n  end\n  if held == 1 then\n    for id in string.gmatch(ARGV[i + 1], '%x+') do\n      redis.call('ZADD', permits, 'GT', expiry, raw(id))\n    end\n  end\n  replies[i] = held\nend\nreturn replies"
  },
  "permit_semaphore/set": {
    name: "permit_semaphore/set",
    sha1: "ff6248489bf007e53fae287feb97b1c2e98f4f0b",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif available and ARGV[2] ~= '1' then\n  return 0\nend\nlocal change = ARGV[1] - (available or 0) - redis.call('ZCARD', KEYS[2])\nif available and change == 0 then\n  return 0\nend\navailable = redis.call('INCRBY', KEYS[1], change)\nif available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nreturn 1"
  },
  "permit_semaphore/try_release": {
    name: "permit_semaphore/try_release",
    sha1: "738cd7c4b43eca24a61646d4af58abac75041c03",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal held = true\nfor i = 2, #ARGV do\n  held = held and redis.call('ZSCORE', KEYS[2], raw(ARGV[i]))\nend\nlocal removed = 0\nif held then\n  for i = 2, #ARGV do\n    removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))\n  end\n  if available then\n    available = redis.call('INCRBY', KEYS[1], removed)\n  end\nend\nif reaped + removed > 0 and available and available > 0 then\n  redis.pcall(ARGV[1], KEYS[3], available)\nend\nreturn removed"
  },
  "permit_semaphore/update_lease": {
    name: "permit_semaphore/update_lease",
    sha1: "e79231c8976129c9d7f96fa80f4293a086418eff",
    lua: "local function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal score = redis.call('ZSCORE', KEYS[1], raw(ARGV[1]))\nif not score or tonumber(score) <= now then\n  return 0\nend\nredis.call('ZADD', KEYS[1], ARGV[2] == '-1' and '922337203685477' or now + ARGV[2], raw(ARGV[1]))\nreturn 1"
  },
  "semaphore/acquire": {
    name: "semaphore/acquire",
    sha1: "c5a09dac8343b8a7c8fb6e79611b5b2057357e22",
    lua: "if redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal granted = redis.call('EXISTS', KEYS[3])\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = tonumber(ARGV[1])\n  redis.call('SET', KEYS[1], available)\nend\nif granted == 0 and available and available >= tonumber(ARGV[2]) then\n  granted = 1\n  available = redis.call('DECRBY', KEYS[1], ARGV[2])\n  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])\nend\nif created and available > 0 then\n  redis.pcall(ARGV[4], KEYS[4], available)\nend\nreturn { granted, available or 0 }"
  },
  "semaphore/add": {
    name: "semaphore/add",
    sha1: "293ff84524b40176624a97b8597c296506e176e4",
    lua: "if redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = tonumber(ARGV[1])\n  redis.call('SET', KEYS[1], available)\nend\nif not available and ARGV[3] == '1' then\n  return 0\nend\navailable = redis.call('INCRBY', KEYS[1], ARGV[2])\nif available > 0 then\n  redis.pcall(ARGV[4], KEYS[3], available)\nend\nreturn 1"
  },
  "semaphore/available": {
    name: "semaphore/available",
    sha1: "e208371db05740567d056c162830eda41540b6f8",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nreturn available"
  },
  "semaphore/drain": {
    name: "semaphore/drain",
    sha1: "129671d16238c4da1ec20921a46dab58bf73f2e8",
    lua: "if redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = tonumber(ARGV[1])\n  redis.call('SET', KEYS[1], available)\nend\nif not available then\n  return 0\nend\nredis.call('DECRBY', KEYS[1], available)\nreturn available"
  },
  "semaphore/return": {
    name: "semaphore/return",
    sha1: "21f557f76e29f37ce7e1f5b384ae876536ad32fc",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif redis.call('DEL', KEYS[2]) == 0 and ARGV[2] ~= '1' then\n  return 0\nend\nif not available then\n  return 0\nend\navailable = redis.call('INCRBY', KEYS[1], ARGV[1])\nif available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nreturn 1"
  },
  "semaphore/set": {
    name: "semaphore/set",
    sha1: "a844ebcf7f575e81835a07aa7634a1ca3bc3b7f7",
    lua: "if redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif available then\n  return 0\nend\nredis.call('SET', KEYS[1], ARGV[1])\nif ARGV[2] ~= '0' then\n  redis.call('PEXPIRE', KEYS[1], ARGV[2])\nend\nif tonumber(ARGV[1]) > 0 then\n  redis.pcall(ARGV[3], KEYS[3], ARGV[1])\nend\nreturn 1"
  }
} as const
