/**
 * Commands on keys, and the others that scripts call: if a client sends only scripts, all of these ran within them.
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
  ...["publish", "pubsub|numsub", "pubsub|shardnumsub", "time"]
]
