// Generated from lua/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
  "fair_lock/acquire": {
    name: "fair_lock/acquire",
    hasDeadline: true,
    sha1: "86c5270c09d6f2f8ca3efba63f0cd76514a6396c",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal first = redis.call('LINDEX', KEYS[3], 0)\nlocal head = first\nlocal seen = head and redis.call('ZSCORE', KEYS[5], 'seen')\nif seen then\n  local still = now - tonumber(seen)\n  if still > 600 then\n    local clients = redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES')\n    for i = 1, #clients, 2 do\n      local alive = tonumber(clients[i + 1])\n      if clients[i] ~= 'seen' and alive > tonumber(seen) and alive < now + 1000 then\n        local until_then = alive % 1 == 0 and now + math.min(3 * still, 5000) + 0.5\n          or alive + math.max(still - 1000, 0)\n        redis.call('ZADD', KEYS[5], until_then, clients[i])\n      end\n    end\n  end\n  redis.call('ZADD', KEYS[5], now, 'seen')\nend\nwhile head do\n  local due = redis.call('ZSCORE', KEYS[4], head)\n  if not due then\n    redis.call('ZADD', KEYS[4], now + 300000, head)\n    break\n  end\n  local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))\n  if tonumber(due) > now and (not alive or tonumber(alive) > now) then\n    break\n  end\n  redis.call('LPOP', KEYS[3])\n  redis.call('ZREM', KEYS[4], head)\n  head = redis.call('LINDEX', KEYS[3], 0)\nend\nif first and not head then\n  redis.call('DEL', KEYS[4], KEYS[5])\nend\nlocal patience = tonumber(ARGV[4])\nlocal holder = head\nif redis.call('EXISTS', KEYS[1]) == 1 then\n  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then\n    local left = redis.call('PTTL', KEYS[1])\n    if left >= 0 and left < tonumber(ARGV[2]) then\n      redis.call('PEXPIRE', KEYS[1], ARGV[2])\n    end\nlocal token = KEYS[2] == KEYS[1] and 0 or tonumber(redis.call('GET', KEYS[2]) or 1) or 1\nreturn { 'granted', token, digits }\n  end\n  if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then\n    return redis.error_reply('WRONGTYPE a read-write lock')\n  end\n  holder = redis.call('HKEYS', KEYS[1])[1]\nelseif not head or head == ARGV[1] then\n  local at_least = ''\nlocal token = 0\nif KEYS[2] ~= KEYS[1] then\n  token = micros\n  local bound = at_least and tonumber(at_least)\n  local text = digits\n  if bound and bound > token then\n    text = at_least\n    token = bound\n  end\n  local before = redis.call('SET', KEYS[2], text, 'PX', ARGV[3], 'GET')\n  if before then\nlocal no_token = 'WRONGTYPE something that is no fencing token, under '\nlocal last = tonumber(before)\nif last and (last % 1 ~= 0 or last >= 9007199254740992) then\n  last = false\nend\n    if not last then\n      redis.call('SET', KEYS[2], before)\n      return redis.error_reply(no_token .. KEYS[2])\n    end\n    if last < 1000000000000000 then\n      token = last + 1\n      redis.call('SET', KEYS[2], token)\n    elseif last >= token then\n      token = last + 1\n      redis.call('SET', KEYS[2], token, 'PX', ARGV[3])\n    end\n  end\nend\n  if head then\n    redis.call('LPOP', KEYS[3])\n    redis.call('ZREM', KEYS[4], head)\n    for _, waiter in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do\n      redis.call('ZINCRBY', KEYS[4], -patience, waiter)\n    end\n  end\n  if redis.call('EXISTS', KEYS[3]) == 0 then\n    redis.call('DEL', KEYS[4], KEYS[5])\n  end\n  redis.call('HSET', KEYS[1], ARGV[1], 1)\n  redis.call('PEXPIRE', KEYS[1], ARGV[2])\nif token == micros then\n  return token\nend\nreturn { 'granted', token, digits }\nelseif head ~= first then\n  redis.pcall(ARGV[7], KEYS[6] .. ':' .. head, '0')\nend\nif patience > 0 then\nlocal function queue_up(owner)\n  if redis.call('ZSCORE', KEYS[4], owner) then\n    return\n  end\n  local last = redis.call('LINDEX', KEYS[3], -1)\n  local base = last and redis.call('ZSCORE', KEYS[4], last)\n  if base then\n    base = math.max(tonumber(base), now)\n  else\n    base = now + math.max(0, redis.call('PTTL', KEYS[1]))\n  end\n  redis.call('ZADD', KEYS[4], base + patience, owner)\n  redis.call('RPUSH', KEYS[3], owner)\nend\n  queue_up(ARGV[1])\n  redis.call('ZADD', KEYS[5], now + ARGV[6], ARGV[5], now, 'seen')\n  redis.call('PEXPIRE', KEYS[5], 86400000)\nend\nreturn { redis.call('PTTL', KEYS[1]), holder }"
  },
  "fair_lock/force_release": {
    name: "fair_lock/force_release",
    hasDeadline: true,
    sha1: "caf59ff50b27707c1c6d5e2ef651563eb8264a4f",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('HEXISTS', KEYS[1], 'mode') == 1 then\n  return redis.error_reply('WRONGTYPE a read-write lock')\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal first = redis.call('LINDEX', KEYS[3], 0)\nlocal head = first\nlocal seen = head and redis.call('ZSCORE', KEYS[5], 'seen')\nif seen then\n  local still = now - tonumber(seen)\n  if still > 600 then\n    local clients = redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES')\n    for i = 1, #clients, 2 do\n      local alive = tonumber(clients[i + 1])\n      if clients[i] ~= 'seen' and alive > tonumber(seen) and alive < now + 1000 then\n        local until_then = alive % 1 == 0 and now + math.min(3 * still, 5000) + 0.5\n          or alive + math.max(still - 1000, 0)\n        redis.call('ZADD', KEYS[5], until_then, clients[i])\n      end\n    end\n  end\n  redis.call('ZADD', KEYS[5], now, 'seen')\nend\nwhile head do\n  local due = redis.call('ZSCORE', KEYS[4], head)\n  if not due then\n    redis.call('ZADD', KEYS[4], now + 300000, head)\n    break\n  end\n  local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))\n  if tonumber(due) > now and (not alive or tonumber(alive) > now) then\n    break\n  end\n  redis.call('LPOP', KEYS[3])\n  redis.call('ZREM', KEYS[4], head)\n  head = redis.call('LINDEX', KEYS[3], 0)\nend\nif not head then\n  redis.call('DEL', KEYS[4], KEYS[5])\nend\nlocal existed = redis.call('DEL', KEYS[1])\nif existed == 1 and head then\n  redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')\nend\nreturn existed"
  },
  "fair_lock/refresh": {
    name: "fair_lock/refresh",
    hasDeadline: true,
    sha1: "00259368620c31efc7e917e9624f65f77b69de65",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal patience = tonumber(ARGV[2])\nlocal last_waiting = 8 + ARGV[8]\nlocal own = {}\nfor i = 9, #ARGV - 1 do\n  own[ARGV[i]] = own[ARGV[i]] or (i <= last_waiting and 'waits' or 'asks')\nend\nif next(own) then\n  local clock = redis.call('TIME')\n  local millis = clock[1] * 1000 + math.floor(clock[2] / 1000)\n  redis.call('ZADD', KEYS[5], millis + ARGV[4], ARGV[3])\n  redis.call('ZADD', KEYS[5], 'NX', millis, 'seen')\n  redis.call('PEXPIRE', KEYS[5], 86400000)\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal first = redis.call('LINDEX', KEYS[3], 0)\nlocal head = first\nlocal seen = head and redis.call('ZSCORE', KEYS[5], 'seen')\nif seen then\n  local still = now - tonumber(seen)\n  if still > 600 then\n    local clients = redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES')\n    for i = 1, #clients, 2 do\n      local alive = tonumber(clients[i + 1])\n      if clients[i] ~= 'seen' and alive > tonumber(seen) and alive < now + 1000 then\n        local until_then = alive % 1 == 0 and now + math.min(3 * still, 5000) + 0.5\n          or alive + math.max(still - 1000, 0)\n        redis.call('ZADD', KEYS[5], until_then, clients[i])\n      end\n    end\n  end\n  redis.call('ZADD', KEYS[5], now, 'seen')\nend\nwhile head do\n  local due = redis.call('ZSCORE', KEYS[4], head)\n  if not due then\n    redis.call('ZADD', KEYS[4], now + 300000, head)\n    break\n  end\n  local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))\n  if tonumber(due) > now and (not alive or tonumber(alive) > now) then\n    break\n  end\n  redis.call('LPOP', KEYS[3])\n  redis.call('ZREM', KEYS[4], head)\n  head = redis.call('LINDEX', KEYS[3], 0)\nend\nlocal function is_left(owner)\n  return string.sub(owner, 1, 36) == ARGV[3]\n    and not own[owner]\n    and (tonumber(string.sub(owner, 38)) or math.huge) <= tonumber(ARGV[6])\nend\nwhile head and is_left(head) do\n  redis.call('LPOP', KEYS[3])\n  redis.call('ZREM', KEYS[4], head)\n  head = redis.call('LINDEX', KEYS[3], 0)\nend\nif ARGV[7] == '1' then\n  local removed = 0\n  local stay = {}\n  for _, owner in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do\n    if is_left(owner) then\n      removed = removed + 1\n      redis.call('ZREM', KEYS[4], owner)\n    else\n      stay[#stay + 1] = owner\n      if removed > 0 then\n        redis.call('ZADD', KEYS[4], 'XX', 'INCR', -patience * removed, owner)\n      end\n    end\n  end\n  if removed > 0 then\n    redis.call('DEL', KEYS[3])\n    for _, owner in ipairs(stay) do\n      redis.call('RPUSH', KEYS[3], owner)\n    end\n  end\nend\nlocal function queue_up(owner)\n  if redis.call('ZSCORE', KEYS[4], owner) then\n    return\n  end\n  local last = redis.call('LINDEX', KEYS[3], -1)\n  local base = last and redis.call('ZSCORE', KEYS[4], last)\n  if base then\n    base = math.max(tonumber(base), now)\n  else\n    base = now + math.max(0, redis.call('PTTL', KEYS[1]))\n  end\n  redis.call('ZADD', KEYS[4], base + patience, owner)\n  redis.call('RPUSH', KEYS[3], owner)\nend\nlocal holder = redis.call('HKEYS', KEYS[1])[1]\nfor i = 9, last_waiting do\n  if ARGV[i] == holder then\n  elseif redis.call('ZSCORE', KEYS[4], ARGV[i]) then\n    redis.call('ZINCRBY', KEYS[4], ARGV[5], ARGV[i])\n  else\n    queue_up(ARGV[i])\n  end\nend\nhead = redis.call('LINDEX', KEYS[3], 0)\nif not head then\n  redis.call('DEL', KEYS[4], KEYS[5])\nelseif not next(own) then\n  redis.call('ZREM', KEYS[5], ARGV[3])\nend\nif holder and own[holder] == 'waits' then\n  return { -2, holder, 0 }\nend\nlocal left = redis.call('PTTL', KEYS[1])\nif not head then\n  return { left, false, 0 }\nend\nif left == -2 and head ~= first then\n  redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')\nend\nlocal due = tonumber(redis.call('ZSCORE', KEYS[4], head))\nlocal alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))\nreturn { left, head, math.max(0, math.min(due, tonumber(alive or due)) - now) }"
  },
  "fair_lock/release": {
    name: "fair_lock/release",
    hasDeadline: false,
    sha1: "cffa4e33efbffb57ccb27b2bc25cae16ce2f3035",
    lua: "local released = redis.call('HDEL', KEYS[1], ARGV[1])\nif redis.call('ZREM', KEYS[4], ARGV[1]) == 1 then\n  local place = redis.call('LPOS', KEYS[3], ARGV[1])\n  if place then\n    for _, waiter in ipairs(redis.call('LRANGE', KEYS[3], place + 1, -1)) do\n      redis.call('ZINCRBY', KEYS[4], -ARGV[3], waiter)\n    end\n    redis.call('LREM', KEYS[3], 0, ARGV[1])\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal first = redis.call('LINDEX', KEYS[3], 0)\nlocal head = first\nlocal seen = head and redis.call('ZSCORE', KEYS[5], 'seen')\nif seen then\n  local still = now - tonumber(seen)\n  if still > 600 then\n    local clients = redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES')\n    for i = 1, #clients, 2 do\n      local alive = tonumber(clients[i + 1])\n      if clients[i] ~= 'seen' and alive > tonumber(seen) and alive < now + 1000 then\n        local until_then = alive % 1 == 0 and now + math.min(3 * still, 5000) + 0.5\n          or alive + math.max(still - 1000, 0)\n        redis.call('ZADD', KEYS[5], until_then, clients[i])\n      end\n    end\n  end\n  redis.call('ZADD', KEYS[5], now, 'seen')\nend\nwhile head do\n  local due = redis.call('ZSCORE', KEYS[4], head)\n  if not due then\n    redis.call('ZADD', KEYS[4], now + 300000, head)\n    break\n  end\n  local alive = redis.call('ZSCORE', KEYS[5], string.sub(head, 1, 36))\n  if tonumber(due) > now and (not alive or tonumber(alive) > now) then\n    break\n  end\n  redis.call('LPOP', KEYS[3])\n  redis.call('ZREM', KEYS[4], head)\n  head = redis.call('LINDEX', KEYS[3], 0)\nend\nif not head then\n  redis.call('DEL', KEYS[4], KEYS[5])\nend\nif redis.call('EXISTS', KEYS[1]) == 1 then\n  return released == 1 and 1 or -1\nend\nlocal listeners = head and redis.pcall(ARGV[2], KEYS[2] .. ':' .. head, '0')\nif released == 0 then\n  return 0\nend\nreturn type(listeners) == 'number' and 1 + listeners or 1"
  },
  "fenced_lock/acquire": {
    name: "fenced_lock/acquire",
    hasDeadline: true,
    sha1: "750026d2dd3dbc293ea22f5dc75744025843075d",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('EXISTS', KEYS[1]) == 1 then\n  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then\nlocal token = KEYS[2] == KEYS[1] and 0 or tonumber(redis.call('GET', KEYS[2]) or 1) or 1\nreturn { 'granted', token, digits }\n  end\n  if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then\n    return redis.error_reply('WRONGTYPE a read-write lock')\n  end\n  return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }\nend\nlocal token = redis.pcall('INCR', KEYS[2])\nif type(token) == 'table' then\n  return string.find(token.err, 'not an integer')\n      and redis.error_reply('WRONGTYPE something that is no fencing token, under ' .. KEYS[2])\n    or token\nend\nif token >= 1000000000000000 then\n  redis.call('PERSIST', KEYS[2])\nend\nredis.call('HSET', KEYS[1], ARGV[1], 1)\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\nif token == micros then\n  return token\nend\nreturn { 'granted', token, digits }"
  },
  "latch/count": {
    name: "latch/count",
    hasDeadline: false,
    sha1: "00d85e8542a392d818e8f5b46b2a8236fac83a66",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nreturn math.max(0, available or 0)"
  },
  "latch/count_down": {
    name: "latch/count_down",
    hasDeadline: true,
    sha1: "6d93d32ef46c99e9c7dc36f60130af1b4dbb2d97",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif not available then\n  return 0\nend\nlocal left = redis.call('INCRBY', KEYS[1], -1)\nif left > 0 then\n  return left\nend\nredis.call('DEL', KEYS[1])\nif left == 0 then\n  redis.pcall(ARGV[1], KEYS[2], '0')\nend\nreturn 0"
  },
  "latch/delete": {
    name: "latch/delete",
    hasDeadline: true,
    sha1: "46c2a5e328f18f2fd32ddb512c90e47720e83dcc",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif not available then\n  return 0\nend\nredis.call('DEL', KEYS[1])\nredis.pcall(ARGV[1], KEYS[2], '1')\nredis.pcall(ARGV[1], KEYS[2], '0')\nreturn 1"
  },
  "latch/set": {
    name: "latch/set",
    hasDeadline: true,
    sha1: "51572a61263973bac7fef40545a12386bac27043",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif available then\n  return 0\nend\nredis.call('SET', KEYS[1], ARGV[1])\nredis.pcall(ARGV[2], KEYS[2], '1')\nreturn 1"
  },
  "lock/acquire": {
    name: "lock/acquire",
    hasDeadline: true,
    sha1: "c4f6091baa4b2e0c0c9e17351a1230851658aed7",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('EXISTS', KEYS[1]) == 1 then\n  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then\nlocal token = KEYS[2] == KEYS[1] and 0 or tonumber(redis.call('GET', KEYS[2]) or 1) or 1\nreturn { 'granted', token, digits }\n  end\n  if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then\n    return redis.error_reply('WRONGTYPE a read-write lock')\n  end\n  return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }\nend\nlocal at_least = ARGV[5] and ARGV[4]\nlocal token = 0\nif KEYS[2] ~= KEYS[1] then\n  token = micros\n  local bound = at_least and tonumber(at_least)\n  local text = digits\n  if bound and bound > token then\n    text = at_least\n    token = bound\n  end\n  local before = redis.call('SET', KEYS[2], text, 'PX', ARGV[3], 'GET')\n  if before then\nlocal no_token = 'WRONGTYPE something that is no fencing token, under '\nlocal last = tonumber(before)\nif last and (last % 1 ~= 0 or last >= 9007199254740992) then\n  last = false\nend\n    if not last then\n      redis.call('SET', KEYS[2], before)\n      return redis.error_reply(no_token .. KEYS[2])\n    end\n    if last < 1000000000000000 then\n      token = last + 1\n      redis.call('SET', KEYS[2], token)\n    elseif last >= token then\n      token = last + 1\n      redis.call('SET', KEYS[2], token, 'PX', ARGV[3])\n    end\n  end\nend\nredis.call('HSET', KEYS[1], ARGV[1], '1')\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\nif token == micros then\n  return token\nend\nreturn { 'granted', token, digits }"
  },
  "lock/force_release": {
    name: "lock/force_release",
    hasDeadline: true,
    sha1: "18e6426d631b0c239cbfdc9fa7b1f0c5469c195d",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('HEXISTS', KEYS[1], 'mode') == 1 then\n  return redis.error_reply('WRONGTYPE a read-write lock')\nend\nlocal existed = redis.call('DEL', KEYS[1])\nif existed == 1 then\n  redis.pcall(ARGV[1], KEYS[2], '0')\nend\nreturn existed"
  },
  "lock/found": {
    name: "lock/found",
    hasDeadline: false,
    sha1: "eb878ee98433ecb707c4c9e63392be61a9f01290",
    lua: "local type = redis.call('TYPE', KEYS[1]).ok\nif type == 'hash' and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then\n  return 'read-write lock'\nend\nreturn type"
  },
  "lock/hold": {
    name: "lock/hold",
    hasDeadline: false,
    sha1: "45ce9374717f8a405ef162b0c04ca5361a4cd9dd",
    lua: "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then\n  return 0\nend\nif ARGV[3] == '0' then\n  redis.call('HDEL', KEYS[1], '')\nend\nredis.call('HSET', KEYS[1], ARGV[1], ARGV[2])\nlocal left = redis.call('PTTL', KEYS[1])\nif left >= 0 and left < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[1], ARGV[3])\nend\nreturn 1"
  },
  "lock/inspect": {
    name: "lock/inspect",
    hasDeadline: false,
    sha1: "02097ae48b82b5c05dbba1a280b8f2e6a4c0d2d6",
    lua: "return { redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1]) }"
  },
  "lock/raise_token": {
    name: "lock/raise_token",
    hasDeadline: false,
    sha1: "8b91d0f84d95f07cca529aba9fabdd4710be12fa",
    lua: "local before = redis.call('GET', KEYS[2]) or 0\nlocal no_token = 'WRONGTYPE something that is no fencing token, under '\nlocal last = tonumber(before)\nif last and (last % 1 ~= 0 or last >= 9007199254740992) then\n  last = false\nend\nif not last then\n  return redis.error_reply(no_token .. KEYS[2])\nend\nif last < tonumber(ARGV[1]) then\n  if ARGV[2] == '0' or tonumber(ARGV[1]) < 1000000000000000 then\n    redis.call('SET', KEYS[2], ARGV[1])\n  else\n    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])\n  end\nend\nreturn 1"
  },
  "lock/release": {
    name: "lock/release",
    hasDeadline: false,
    sha1: "f7c0f0cffd23120c89a37b5f0d8d3f22e367dc1b",
    lua: "if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then\n  if ARGV[2] == '' then\n    return 1\n  end\n  local listeners = redis.pcall(ARGV[2], KEYS[2], '0')\n  return type(listeners) == 'number' and 1 + listeners or 1\nend\nreturn -redis.call('EXISTS', KEYS[1])"
  },
  "lock/renew": {
    name: "lock/renew",
    hasDeadline: false,
    sha1: "716385840c1aabb55cc649c5b20c49f91deed09f",
    lua: "local lease = tonumber(ARGV[1])\nlocal replies = {}\nfor i, lock in ipairs(KEYS) do\n  if redis.pcall('HEXISTS', lock, ARGV[i + 1]) == 1 then\n    local left = redis.call('PTTL', lock)\n    if left >= 0 and left < lease then\n      redis.call('PEXPIRE', lock, ARGV[1])\n    end\n    replies[i] = 1\n  else\n    replies[i] = 0\n  end\nend\nreturn replies"
  },
  "multi_lock/acquire": {
    name: "multi_lock/acquire",
    hasDeadline: true,
    sha1: "1feb434cd78f2d4095daafc9730326fe88a4cf59",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal call = redis.call\nlocal owner = ARGV[1]\nlocal count = #KEYS / 2\nlocal mine = {}\nif count >= 7000 or call('EXISTS', unpack(KEYS, 1, count)) > 0 then\n  for i = 1, count do\n    if call('EXISTS', KEYS[i]) == 1 then\n      if call('HEXISTS', KEYS[i], owner) == 0 then\n        if call('HEXISTS', KEYS[i], 'mode') == 1 then\n          return redis.error_reply('WRONGTYPE a read-write lock')\n        end\n        return { 0, i - 1, call('PTTL', KEYS[i]), call('HKEYS', KEYS[i])[1] }\n      end\n      mine[i] = true\n    end\n  end\nend\nlocal now = micros\nlocal are_same = true\nlocal reply = { 1 }\nfor i = 1, count do\n  local token = now\n  if KEYS[count + i] == KEYS[i] then\n    token = 0\n  elseif mine[i] then\n    token = tonumber(call('GET', KEYS[count + i]) or 1) or 1\n  else\n    local before = redis.pcall('SET', KEYS[count + i], digits, 'PX', ARGV[3], 'GET')\n    if before then\nlocal no_token = 'WRONGTYPE something that is no fencing token, under '\nlocal last = tonumber(before)\nif last and (last % 1 ~= 0 or last >= 9007199254740992) then\n  last = false\nend\n      if not last then\n        for taken = 1, i - 1 do\n          call('HDEL', KEYS[taken], owner)\n        end\n        if type(before) == 'table' then\n          return before\n        end\n        call('SET', KEYS[count + i], before)\n        return redis.error_reply(no_token .. KEYS[count + i])\n      end\n      if last < 1000000000000000 then\n        token = last + 1\n        call('SET', KEYS[count + i], token)\n      elseif last >= token then\n        token = last + 1\n        call('SET', KEYS[count + i], token, 'PX', ARGV[3])\n      end\n    end\n  end\n  if not mine[i] then\n    call('HSET', KEYS[i], owner, '1')\n    call('PEXPIRE', KEYS[i], ARGV[2])\n  end\n  are_same = are_same and token == now\n  reply[i + 1] = token\nend\nreturn are_same and now or reply"
  },
  "multi_lock/release": {
    name: "multi_lock/release",
    hasDeadline: false,
    sha1: "0092119f7928ce509289f87f8dbdffdd8564f536",
    lua: "local pcall = redis.pcall\nlocal owner = ARGV[1]\nlocal publish = ARGV[2]\nlocal is_plain = true\nlocal reply = {}\nfor i = 1, #KEYS, 2 do\n  local released = 1\n  if pcall('HDEL', KEYS[i], owner) == 1 then\n    local listeners = pcall(publish, KEYS[i + 1], '0')\n    if type(listeners) == 'number' then\n      released = 1 + listeners\n    end\n  else\n    released = -redis.call('EXISTS', KEYS[i])\n  end\n  is_plain = is_plain and released == 1\n  reply[(i + 1) / 2] = released\nend\nreturn is_plain and 1 or reply"
  },
  "permit_semaphore/acquire": {
    name: "permit_semaphore/acquire",
    hasDeadline: true,
    sha1: "14e65755bab2efe10101a84c709b5bc696518b3c",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = ARGV[1] - redis.call('ZCARD', KEYS[2])\n  redis.call('SET', KEYS[1], available)\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal sent = redis.call('ZSCORE', KEYS[2], raw(ARGV[4]))\nlocal wanted = #ARGV - 4\nlocal granted = sent or available and available >= wanted\nif granted and not sent then\n  local expiry = now + ARGV[2]\n  for i = 4, #ARGV - 1 do\n    redis.call('ZADD', KEYS[2], expiry, raw(ARGV[i]))\n  end\n  available = redis.call('INCRBY', KEYS[1], -wanted)\n  local life = redis.call('PTTL', KEYS[1])\n  if life > 0 then\n    redis.call('PEXPIRE', KEYS[2], life)\n  end\nend\nif (created or reaped > 0) and available and available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nif granted then\n  return { 1, available or 0, -1 }\nend\nlocal next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]\nnext = next and tonumber(next)\nreturn {\n  0,\n  available or 0,\n  next and next < 922337203685477 and next - now or -1,\n  available and redis.call('ZCARD', KEYS[2]) or -1\n}"
  },
  "permit_semaphore/add": {
    name: "permit_semaphore/add",
    hasDeadline: true,
    sha1: "0a27257e2e3aba08460e9a0bd8c11c2a15b909b6",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = ARGV[1] - redis.call('ZCARD', KEYS[2])\n  redis.call('SET', KEYS[1], available)\nend\navailable = redis.call('INCRBY', KEYS[1], ARGV[2])\nif available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nreturn available"
  },
  "permit_semaphore/count": {
    name: "permit_semaphore/count",
    hasDeadline: false,
    sha1: "bcec39a63e1d815a1ecf4629e2de3adc529285ba",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nif reaped > 0 and available and available > 0 then\n  redis.pcall(ARGV[1], KEYS[3], available)\nend\nreturn { available, redis.call('ZCARD', KEYS[2]) }"
  },
  "permit_semaphore/lease": {
    name: "permit_semaphore/lease",
    hasDeadline: false,
    sha1: "33ba0efad14027081542319d7e18d09c90cc9221",
    lua: "local function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal score = redis.call('ZSCORE', KEYS[1], raw(ARGV[1]))\nif not score then\n  return -2\nend\nscore = tonumber(score)\nif score >= 922337203685477 then\n  return -1\nend\nlocal time = redis.call('TIME')\nlocal left = score - time[1] * 1000 - math.floor(time[2] / 1000)\nreturn left > 0 and left or -2"
  },
  "permit_semaphore/release": {
    name: "permit_semaphore/release",
    hasDeadline: false,
    sha1: "cd36889e7d3b03ee1e1fc8c65276a8662d4e4187",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal removed = 0\nfor i = 2, #ARGV do\n  removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))\nend\nlocal listeners\nif available and removed > 0 then\n  available = redis.call('INCRBY', KEYS[1], removed)\n  listeners = available > 0 and redis.pcall(ARGV[1], KEYS[3], available)\nend\nif removed < #ARGV - 1 then\n  return -1\nend\nreturn type(listeners) == 'number' and 1 + listeners or 1"
  },
  "permit_semaphore/renew": {
    name: "permit_semaphore/renew",
    hasDeadline: false,
    sha1: "8298517bce61ecd023a639bb83e553f9c30c5932",
    lua: "redis.pcall('ZREM', KEYS[1], '')\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal expiry = now + ARGV[1]\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal replies = {}\nfor i, permits in ipairs(KEYS) do\n  local held = 1\n  for id in string.gmatch(ARGV[i + 1], '%x+') do\n    local score = redis.pcall('ZSCORE', permits, raw(id))\n    if type(score) ~= 'string' or tonumber(score) <= now then\n      held = 0\n    end\n  end\n  if held == 1 then\n    for id in string.gmatch(ARGV[i + 1], '%x+') do\n      redis.call('ZADD', permits, 'GT', expiry, raw(id))\n    end\n  end\n  replies[i] = held\nend\nreturn replies"
  },
  "permit_semaphore/set": {
    name: "permit_semaphore/set",
    hasDeadline: true,
    sha1: "95aed326ec91b303e3ea8a36711ece1df33e0c8d",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif available and ARGV[2] ~= '1' then\n  return 0\nend\nlocal change = ARGV[1] - (available or 0) - redis.call('ZCARD', KEYS[2])\nif available and change == 0 then\n  return 0\nend\navailable = redis.call('INCRBY', KEYS[1], change)\nif available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nreturn 1"
  },
  "permit_semaphore/try_release": {
    name: "permit_semaphore/try_release",
    hasDeadline: false,
    sha1: "738cd7c4b43eca24a61646d4af58abac75041c03",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal reaped = redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)\nif available and reaped > 0 then\n  available = redis.call('INCRBY', KEYS[1], reaped)\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal held = true\nfor i = 2, #ARGV do\n  held = held and redis.call('ZSCORE', KEYS[2], raw(ARGV[i]))\nend\nlocal removed = 0\nif held then\n  for i = 2, #ARGV do\n    removed = removed + redis.call('ZREM', KEYS[2], raw(ARGV[i]))\n  end\n  if available then\n    available = redis.call('INCRBY', KEYS[1], removed)\n  end\nend\nif reaped + removed > 0 and available and available > 0 then\n  redis.pcall(ARGV[1], KEYS[3], available)\nend\nreturn removed"
  },
  "permit_semaphore/update_lease": {
    name: "permit_semaphore/update_lease",
    hasDeadline: true,
    sha1: "f5442e2ceb097f2fa1f75b0762194e5a8b8d65de",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal function raw(id)\n  return (string.gsub(id, '%x%x', function(digits)\n    return string.char(tonumber(digits, 16))\n  end))\nend\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal score = redis.call('ZSCORE', KEYS[1], raw(ARGV[1]))\nif not score or tonumber(score) <= now then\n  return 0\nend\nredis.call('ZADD', KEYS[1], ARGV[2] == '-1' and '922337203685477' or now + ARGV[2], raw(ARGV[1]))\nreturn 1"
  },
  "read_lock/acquire": {
    name: "read_lock/acquire",
    hasDeadline: true,
    sha1: "d684626e7a7d17824734cedbfe7d76b3ebbf9bbc",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal mode = redis.call('HGET', KEYS[1], 'mode')\nlocal left = redis.call('PTTL', KEYS[1])\nif not mode and left ~= -2 then\n  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')\nend\nlocal mine = ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[3] .. ':write') == 1\nlocal is_new = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0\nif is_new then\n  if mode == 'write' and not mine then\n    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do\n      if string.sub(field, -6) == ':write' then\n        return { left, string.sub(field, 1, -7) }\n      end\n    end\n  end\n  if ARGV[5] == '1' and not mine then\n    local writer = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')\n    if writer[1] then\n      local wait = tonumber(writer[2]) - (time[1] * 1000 + math.floor(time[2] / 1000))\n      if wait > 0 then\n        return { wait, writer[1] }\n      end\n    end\n  end\nend\nlocal token = tonumber(ARGV[4])\nif KEYS[2] == KEYS[1] then\n  token = 0\nelseif not mine then\n  local before = redis.call('GET', KEYS[2])\n  if before then\nlocal no_token = 'WRONGTYPE something that is no fencing token, under '\nlocal last = tonumber(before)\nif last and (last % 1 ~= 0 or last >= 9007199254740992) then\n  last = false\nend\n    if not last then\n      return redis.error_reply(no_token .. KEYS[2])\n    end\n    token = last\n  else\n    token = micros - 1\n  end\nend\nif is_new then\n  local noted = redis.call('ZRANGE', KEYS[5], -1, -1)[1]\n  if noted and redis.call('HEXISTS', KEYS[1], noted) == 0 then\n    redis.call('DEL', KEYS[5])\n  end\n  if not mode then\n    redis.call('HSET', KEYS[1], 'mode', 'read')\n  end\n  redis.call('HSET', KEYS[1], ARGV[1], 1)\n  redis.call('ZADD', KEYS[5], 0, ARGV[1])\nend\nredis.call('SET', KEYS[3], 1, 'PX', ARGV[2])\nif left < tonumber(ARGV[2]) and left ~= -1 then\n  redis.call('PEXPIRE', KEYS[1], ARGV[2])\nend\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal function note_reader(readers, owner, lock, lease)\n  redis.call('ZADD', readers, 'XX', 'GT', now + lease, owner)\n  redis.call('PEXPIRE', readers, math.max(lease, redis.call('PTTL', lock)))\nend\nnote_reader(KEYS[5], ARGV[1], KEYS[1], tonumber(ARGV[2]))\nreturn token"
  },
  "read_lock/force_release": {
    name: "read_lock/force_release",
    hasDeadline: true,
    sha1: "f81108ac51efba57579b0d7f41cc0c5cd56581a6",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal mode = redis.call('HGET', KEYS[1], 'mode')\nif not mode and redis.call('EXISTS', KEYS[1]) == 1 then\n  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')\nend\nif mode ~= 'read' then\n  return 0\nend\nlocal fields = redis.call('HGETALL', KEYS[1])\nfor i = 1, #fields, 2 do\n  for number = 1, tonumber(fields[i + 1]) or 0 do\n    redis.call('DEL', KEYS[3] .. ':' .. fields[i] .. ':rwlock_timeout:' .. number)\n  end\nend\nredis.call('DEL', KEYS[1], KEYS[4])\nredis.pcall(ARGV[1], KEYS[2], '0')\nreturn 1"
  },
  "read_lock/hold": {
    name: "read_lock/hold",
    hasDeadline: true,
    sha1: "533aa5983389c97c5250c8dc8a8cf70c79b424a8",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))\nif not held then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[1], math.max(held, tonumber(ARGV[2])))\nif redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then\n  redis.call('SET', KEYS[2], 1, 'PX', ARGV[3])\nend\nlocal left = redis.call('PTTL', KEYS[1])\nif left >= 0 and left < tonumber(ARGV[3]) then\n  redis.call('PEXPIRE', KEYS[1], ARGV[3])\nend\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal function note_reader(readers, owner, lock, lease)\n  redis.call('ZADD', readers, 'XX', 'GT', now + lease, owner)\n  redis.call('PEXPIRE', readers, math.max(lease, redis.call('PTTL', lock)))\nend\nnote_reader(KEYS[3], ARGV[1], KEYS[1], tonumber(ARGV[3]))\nreturn 1"
  },
  "read_lock/release": {
    name: "read_lock/release",
    hasDeadline: false,
    sha1: "c23a66dd59834e9c7dec7db2f692e4f05f9d49bf",
    lua: "local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))\nif not held then\n  return -redis.call('EXISTS', KEYS[1])\nend\nfor number = 1, held do\n  redis.call('DEL', KEYS[3] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. number)\nend\nredis.call('HDEL', KEYS[1], ARGV[1])\nredis.call('ZREM', KEYS[4], ARGV[1])\nlocal publish = ARGV[2]\nif redis.call('HGET', KEYS[1], 'mode') == 'write' then\n  return 1\nend\nlocal function longest_read(stem)\n  local readers = redis.call('HLEN', KEYS[1]) - 1\n  if readers <= 0 then\n    return 0\n  end\n  if redis.call('ZCARD', KEYS[4]) == readers then\n    local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]\n    local time = redis.call('TIME')\n    return math.max(0, last - time[1] * 1000 - math.floor(time[2] / 1000))\n  end\n  local longest = 0\n  local fields = redis.call('HGETALL', KEYS[1])\n  for i = 1, #fields, 2 do\n    for number = 1, tonumber(fields[i + 1]) or 0 do\n      longest = math.max(longest, redis.call('PTTL', stem .. ':' .. fields[i] .. ':rwlock_timeout:' .. number))\n    end\n  end\n  return longest\nend\nlocal longest = longest_read(KEYS[3])\nif longest > 0 then\n  redis.call('PEXPIRE', KEYS[1], longest)\n  redis.call('PEXPIRE', KEYS[4], longest)\n  return 1\nend\nredis.call('DEL', KEYS[1], KEYS[4])\nif publish == '' then\n  return 1\nend\nlocal listeners = redis.pcall(publish, KEYS[2], '0')\nreturn type(listeners) == 'number' and 1 + listeners or 1"
  },
  "read_lock/remove_hold": {
    name: "read_lock/remove_hold",
    hasDeadline: true,
    sha1: "417f6eb383175c66cb827c113092a37c109d30f0",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal function hold_key(number)\n  return KEYS[3] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. number\nend\nlocal held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))\nif not held then\n  return -redis.call('EXISTS', KEYS[1])\nend\nlocal remain = math.min(held, tonumber(ARGV[2]))\nlocal moves = remain < held and tonumber(ARGV[4]) <= remain\nlocal left = moves and redis.call('PTTL', hold_key(held))\nredis.call('HDEL', KEYS[1], '')\nfor number = remain + 1, held do\n  redis.call('DEL', hold_key(number))\nend\nif moves and left > 0 then\n  redis.call('SET', hold_key(ARGV[4]), 1, 'PX', left)\nelseif moves then\n  redis.call('DEL', hold_key(ARGV[4]))\nend\nredis.call('HSET', KEYS[1], ARGV[1], remain)\nlocal longest_own = 0\nfor number = 1, remain do\n  longest_own = math.max(longest_own, redis.call('PTTL', hold_key(number)))\nend\nredis.call('ZADD', KEYS[4], 'XX', time[1] * 1000 + math.floor(time[2] / 1000) + longest_own, ARGV[1])\nlocal publish = ARGV[3]\nif redis.call('HGET', KEYS[1], 'mode') == 'write' then\n  return 1\nend\nlocal function longest_read(stem)\n  local readers = redis.call('HLEN', KEYS[1]) - 1\n  if readers <= 0 then\n    return 0\n  end\n  if redis.call('ZCARD', KEYS[4]) == readers then\n    local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]\n    local time = redis.call('TIME')\n    return math.max(0, last - time[1] * 1000 - math.floor(time[2] / 1000))\n  end\n  local longest = 0\n  local fields = redis.call('HGETALL', KEYS[1])\n  for i = 1, #fields, 2 do\n    for number = 1, tonumber(fields[i + 1]) or 0 do\n      longest = math.max(longest, redis.call('PTTL', stem .. ':' .. fields[i] .. ':rwlock_timeout:' .. number))\n    end\n  end\n  return longest\nend\nlocal longest = longest_read(KEYS[3])\nif longest > 0 then\n  redis.call('PEXPIRE', KEYS[1], longest)\n  redis.call('PEXPIRE', KEYS[4], longest)\n  return 1\nend\nredis.call('DEL', KEYS[1], KEYS[4])\nif publish == '' then\n  return 1\nend\nlocal listeners = redis.pcall(publish, KEYS[2], '0')\nreturn type(listeners) == 'number' and 1 + listeners or 1"
  },
  "read_lock/renew": {
    name: "read_lock/renew",
    hasDeadline: false,
    sha1: "12be763a70e907182b91e09d9d9a56cf32b1f491",
    lua: "redis.pcall('HDEL', KEYS[1], '')\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal function note_reader(readers, owner, lock, lease)\n  redis.call('ZADD', readers, 'XX', 'GT', now + lease, owner)\n  redis.call('PEXPIRE', readers, math.max(lease, redis.call('PTTL', lock)))\nend\nlocal lease = tonumber(ARGV[1])\nlocal replies = {}\nlocal key = 1\nfor i = 2, #ARGV, 2 do\n  local lock, readers, holds = KEYS[key], KEYS[key + 1], tonumber(ARGV[i + 1])\n  local held = redis.pcall('HGET', lock, ARGV[i])\n  local last = type(held) == 'string' and key + 1 + math.min(holds, tonumber(held)) or key + 1\n  replies[#replies + 1] = 0\n  local first = key + 2\n  while first <= last and redis.call('EXISTS', KEYS[first]) == 0 do\n    first = first + 1\n  end\n  if first <= last then\n    replies[#replies] = 1\n    for hold = key + 2, last do\n      local left = redis.call('PTTL', KEYS[hold])\n      if left == -2 then\n        redis.call('SET', KEYS[hold], 1, 'PX', ARGV[1])\n      elseif left < lease then\n        redis.call('PEXPIRE', KEYS[hold], ARGV[1])\n      end\n    end\n    local left = redis.call('PTTL', lock)\n    if left >= 0 and left < lease then\n      redis.call('PEXPIRE', lock, ARGV[1])\n    end\n    note_reader(readers, ARGV[i], lock, lease)\n  end\n  key = key + 2 + holds\nend\nreturn replies"
  },
  "record/clear": {
    name: "record/clear",
    hasDeadline: false,
    sha1: "631a862e47a371e79434bca38ca96529b0e908e4",
    lua: "local owner = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) ')\nif owner ~= ARGV[1] then\n  return 0\nend\nredis.call('DEL', KEYS[2])\nredis.pcall(ARGV[2], KEYS[2], '0')\nreturn 1"
  },
  "record/read": {
    name: "record/read",
    hasDeadline: false,
    sha1: "35d89bc4d5683c4d1ef42cc4df4c4ffc486265d7",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nreturn { digits, redis.call('HKEYS', KEYS[1])[1] or '', redis.call('GET', KEYS[2]) }"
  },
  "record/write": {
    name: "record/write",
    hasDeadline: true,
    sha1: "443f78d06cd7e5ea0927ddaae062793b4b7715f2",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then\n  return 0\nend\nlocal owner, version = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) %S+ (%S+) ')\nif owner == ARGV[1] and tonumber(version) > tonumber(ARGV[3]) then\n  return 1\nend\nredis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])\nif ARGV[5] ~= '0' then\n  redis.call('PEXPIRE', KEYS[2], ARGV[5])\nend\nredis.pcall(ARGV[6], KEYS[2], ARGV[2])\nreturn 1"
  },
  "semaphore/acquire": {
    name: "semaphore/acquire",
    hasDeadline: true,
    sha1: "de81e364da51847580d6b9f06d7fb9c4ef8d4846",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal marker = redis.call('GET', KEYS[3])\nlocal granted = marker and 1 or 0\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = tonumber(ARGV[1])\n  redis.call('SET', KEYS[1], available)\nend\nif not marker and available and available >= tonumber(ARGV[2]) then\n  granted = 1\n  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])\n  available = redis.call('INCRBY', KEYS[1], -ARGV[2])\nend\nif created and available > 0 then\n  redis.pcall(ARGV[4], KEYS[4], available)\nend\nreturn { granted, available or 0, available and 1 or 0 }"
  },
  "semaphore/add": {
    name: "semaphore/add",
    hasDeadline: true,
    sha1: "78b236ed1062e28ee23b649598556f0f13f35496",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = tonumber(ARGV[1])\n  redis.call('SET', KEYS[1], available)\nend\nif not available and ARGV[3] == '1' then\n  return 0\nend\navailable = redis.call('INCRBY', KEYS[1], ARGV[2])\nif available > 0 then\n  redis.pcall(ARGV[4], KEYS[3], available)\nend\nreturn 1"
  },
  "semaphore/available": {
    name: "semaphore/available",
    hasDeadline: false,
    sha1: "e208371db05740567d056c162830eda41540b6f8",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nreturn available"
  },
  "semaphore/drain": {
    name: "semaphore/drain",
    hasDeadline: true,
    sha1: "a79ca2d615d77fcc386982d9cfca5df2eda7fe4f",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nlocal created = not available and ARGV[1] ~= ''\nif created then\n  available = tonumber(ARGV[1])\n  redis.call('SET', KEYS[1], available)\nend\nif not available or available == 0 then\n  return 0\nend\nredis.call('INCRBY', KEYS[1], -available)\nreturn available"
  },
  "semaphore/return": {
    name: "semaphore/return",
    hasDeadline: false,
    sha1: "b9b52817b22a4de03df5a8e0984efca5f7c16c22",
    lua: "local available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif ARGV[2] == '0' then\n  if redis.call('DEL', KEYS[2]) == 0 then\n    return 0\n  end\nelse\n  local before = redis.call('GET', KEYS[2])\n  redis.call('DEL', KEYS[2])\n  redis.call('SET', KEYS[2], 'returned', 'PX', ARGV[2])\n  if before == 'returned' then\n    return 1\n  end\nend\nif not available then\n  return 0\nend\navailable = redis.call('INCRBY', KEYS[1], ARGV[1])\nif available > 0 then\n  redis.pcall(ARGV[3], KEYS[3], available)\nend\nreturn 1"
  },
  "semaphore/set": {
    name: "semaphore/set",
    hasDeadline: true,
    sha1: "db15d383c255bf9ff805ac3f80600c3cb3424126",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nif redis.call('EXISTS', KEYS[2]) == 1 then\n  return redis.error_reply('WRONGTYPE a permit semaphore')\nend\nlocal available = redis.call('GET', KEYS[1])\nif available then\n  available = tonumber(available)\n  if not available then\n    return redis.error_reply('WRONGTYPE not a counter')\n  end\nend\nif available then\n  return 0\nend\nredis.call('SET', KEYS[1], ARGV[1])\nif ARGV[2] ~= '0' then\n  redis.call('PEXPIRE', KEYS[1], ARGV[2])\nend\nif tonumber(ARGV[1]) > 0 then\n  redis.pcall(ARGV[3], KEYS[3], ARGV[1])\nend\nreturn 1"
  },
  "write_lock/acquire": {
    name: "write_lock/acquire",
    hasDeadline: true,
    sha1: "08411f65c7226c034f86fbb0f7e4387c252b41d0",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal mode = redis.call('HGET', KEYS[1], 'mode')\nif mode then\n  if redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 1 then\nlocal token = KEYS[2] == KEYS[1] and 0 or tonumber(redis.call('GET', KEYS[2]) or 1) or 1\nreturn { 'granted', token, digits }\n  end\n  if ARGV[5] ~= '0' and mode == 'read' then\n    redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5], ARGV[4])\n    if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[5]) then\n      redis.call('PEXPIRE', KEYS[3], ARGV[5])\n    end\n  end\n  if mode == 'read' then\n    local reader = redis.call('ZRANGE', KEYS[4], -1, -1)[1]\n    if reader and redis.call('HEXISTS', KEYS[1], reader) == 1 then\n      return { redis.call('PTTL', KEYS[1]), reader }\n    end\n  end\n  local holder = ''\n  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do\n    if string.sub(field, -6) == ':write' then\n      holder = string.sub(field, 1, -7)\n      break\n    elseif field ~= 'mode' then\n      holder = field\n    end\n  end\n  return { redis.call('PTTL', KEYS[1]), holder }\nelseif redis.call('EXISTS', KEYS[1]) == 1 then\n  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')\nend\nlocal at_least = ARGV[6]\nlocal token = 0\nif KEYS[2] ~= KEYS[1] then\n  token = micros\n  local bound = at_least and tonumber(at_least)\n  local text = digits\n  if bound and bound > token then\n    text = at_least\n    token = bound\n  end\n  local before = redis.call('SET', KEYS[2], text, 'PX', ARGV[3], 'GET')\n  if before then\nlocal no_token = 'WRONGTYPE something that is no fencing token, under '\nlocal last = tonumber(before)\nif last and (last % 1 ~= 0 or last >= 9007199254740992) then\n  last = false\nend\n    if not last then\n      redis.call('SET', KEYS[2], before)\n      return redis.error_reply(no_token .. KEYS[2])\n    end\n    if last < 1000000000000000 then\n      token = last + 1\n      redis.call('SET', KEYS[2], token)\n    elseif last >= token then\n      token = last + 1\n      redis.call('SET', KEYS[2], token, 'PX', ARGV[3])\n    end\n  end\nend\nredis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', '1')\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\nredis.call('ZREM', KEYS[3], ARGV[4])\nif token == micros then\n  return token\nend\nreturn { 'granted', token, digits }"
  },
  "write_lock/force_release": {
    name: "write_lock/force_release",
    hasDeadline: true,
    sha1: "e6e4faf1b55d416fcf566b829bcb9c61ce1af850",
    lua: "local time = redis.call('TIME')\nlocal digits = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))\nlocal micros = time[1] * 1000000 + time[2]\nif micros > ARGV[#ARGV] * 1000 then\n  return redis.error_reply('LATE ' .. digits)\nend\nlocal mode = redis.call('HGET', KEYS[1], 'mode')\nif not mode and redis.call('EXISTS', KEYS[1]) == 1 then\n  return redis.error_reply('WRONGTYPE a lock, but no read-write lock')\nend\nif mode ~= 'write' then\n  return 0\nend\nlocal fields = redis.call('HGETALL', KEYS[1])\nfor i = 1, #fields, 2 do\n  for number = 1, tonumber(fields[i + 1]) or 0 do\n    redis.call('DEL', KEYS[3] .. ':' .. fields[i] .. ':rwlock_timeout:' .. number)\n  end\nend\nredis.call('DEL', KEYS[1], KEYS[4])\nredis.pcall(ARGV[1], KEYS[2], '1')\nreturn 1"
  },
  "write_lock/release": {
    name: "write_lock/release",
    hasDeadline: false,
    sha1: "1c33c4bc0546a749d869cd804f985b776daf31b3",
    lua: "if redis.call('HDEL', KEYS[1], ARGV[1] .. ':write') == 0 then\n  return -redis.call('EXISTS', KEYS[1])\nend\nlocal function longest_read(stem)\n  local readers = redis.call('HLEN', KEYS[1]) - 1\n  if readers <= 0 then\n    return 0\n  end\n  if redis.call('ZCARD', KEYS[4]) == readers then\n    local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]\n    local time = redis.call('TIME')\n    return math.max(0, last - time[1] * 1000 - math.floor(time[2] / 1000))\n  end\n  local longest = 0\n  local fields = redis.call('HGETALL', KEYS[1])\n  for i = 1, #fields, 2 do\n    for number = 1, tonumber(fields[i + 1]) or 0 do\n      longest = math.max(longest, redis.call('PTTL', stem .. ':' .. fields[i] .. ':rwlock_timeout:' .. number))\n    end\n  end\n  return longest\nend\nlocal longest = longest_read(KEYS[3])\nif longest > 0 then\n  redis.call('HSET', KEYS[1], 'mode', 'read')\n  redis.call('PEXPIRE', KEYS[1], longest)\n  redis.call('PEXPIRE', KEYS[4], longest)\nelse\n  redis.call('DEL', KEYS[1], KEYS[4])\nend\nif ARGV[2] == '' then\n  return 1\nend\nlocal listeners = redis.pcall(ARGV[2], KEYS[2], '1')\nreturn type(listeners) == 'number' and 1 + listeners or 1"
  },
  "write_lock/withdraw": {
    name: "write_lock/withdraw",
    hasDeadline: false,
    sha1: "5a0365bf1fc0d4d3dfd9a86999ce1cfa7b379b7c",
    lua: "local waited = redis.call('ZREM', KEYS[3], ARGV[1])\nif waited == 1 and redis.call('EXISTS', KEYS[3]) == 0 then\n  redis.pcall(ARGV[2], KEYS[2], '1')\nend\nreturn waited"
  }
} as const
