/**
 * Commands that work on keys, or tell of it: where a client sends nothing but scripts, all of them ran within those.
 */
export const dataCommands: ReadonlyArray<string> = [
  ...["decr", "decrby", "del", "exists", "get", "incr", "incrby", "persist", "pexpire", "pttl", "set", "type"],
  ...["hdel", "hexists", "hget", "hgetall", "hincrby", "hkeys", "hlen", "hrandfield", "hset"],
  ...["lindex", "llen", "lpop", "lpos", "lpush", "lrange", "lrem", "rpush"],
  ...[
    "zadd",
    "zcard",
    "zcount",
    "zincrby",
    "zrange",
    "zrangebyscore",
    "zrem",
    "zremrangebyrank",
    "zremrangebyscore",
    "zscore"
  ],
  ...["publish", "time"]
]
