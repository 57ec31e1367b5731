import type { Program } from "../Candidate.ts"
import { startJava } from "../processes/javaProcess.ts"

export const candidate: Program = {
  insideScripts: [
    "exists",
    "hexists",
    "hincrby",
    "hset",
    "hget",
    "hdel",
    "hlen",
    "hkeys",
    "pexpire",
    "pttl",
    "get",
    "set",
    "del",
    "publish",
    "lindex",
    "lpop",
    "lpush",
    "lrem",
    "lrange",
    "rpush",
    "zadd",
    "zscore",
    "zrem",
    "zrange",
    "zincrby",
    "incrby",
    "decrby"
  ],
  // An unlock reads its latch within the script, and sends DEL for it afterwards. A semaphore has none.
  sentNevertheless: (calls) => Math.min(calls("del"), calls("get")),
  warmUp: 4,
  start: ({ leaseMillis, port }) => startJava([String(port), String(leaseMillis)])
}
