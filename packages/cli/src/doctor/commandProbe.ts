/**
 * Every command that the library's scripts use, each tried once.
 *
 * KEYS[1..4]  a string, a hash, a list, a zset: new names, which expire within ten seconds
 * ARGV[1]     PUBLISH, or SPUBLISH if sharded pub/sub is in use
 *
 * Replies the names of those that were refused, one that was tried twice perhaps twice.
 */
export const commandProbe = `
local refused = {}
-- how errors begin with which a server refuses the writes of every user
local forAll = { OOM = true, MISCONF = true, NOREPLICAS = true, READONLY = true }
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err and not forAll[string.match(reply.err, '%u+')] then
    refused[#refused + 1] = command
  end
end
local s, h, l, z = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
try('TIME')
try('SET', s, 1, 'PX', 10000)
try('GET', s)
try('INCR', s)
try('INCRBY', s, 1)
try('EXISTS', s)
try('TYPE', s)
try('PTTL', s)
try('PERSIST', s)
try('PEXPIRE', s, 10000)
try('DEL', s)
try('HSET', h, 'a', 1)
try('PEXPIRE', h, 10000)
try('HGET', h, 'a')
try('HGETALL', h)
try('HEXISTS', h, 'a')
try('HKEYS', h)
try('HLEN', h)
try('HRANDFIELD', h, 1)
try('HDEL', h, 'a')
try('RPUSH', l, 'a', 'b')
try('PEXPIRE', l, 10000)
try('LINDEX', l, 0)
try('LLEN', l)
try('LRANGE', l, 0, 0)
try('LREM', l, 0, 'b')
try('LPOP', l)
try('ZADD', z, 1, 'a', 2, 'b')
try('PEXPIRE', z, 10000)
try('ZCARD', z)
try('ZCOUNT', z, 0, 1)
try('ZRANGE', z, 0, 0)
try('ZRANGEBYSCORE', z, 0, 1)
try('ZSCORE', z, 'a')
try('ZREMRANGEBYRANK', z, 0, 0)
try('ZREM', z, 'b')
try('PUBSUB', 'NUMSUB', s)
try(ARGV[1], 'redisson_lock__channel:' .. s, '0')
return refused
`
