// Generated from lua/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
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
  }
} as const
