/**
 * What a server has and another one lacks, of what matters to locks: found out by trying.
 */
import { Redis } from "ioredis"

export interface Feature {
  /** As in the table. */
  readonly title: string
  readonly has: (redis: Redis) => Promise<boolean>
}

/** Whether a command is not refused. */
const accepts =
  (command: string, ...args: ReadonlyArray<string | number>) =>
  (redis: Redis) =>
    redis.call(command, ...args).then(
      () => true,
      () => false
    )

const knows = (command: string) => async (redis: Redis) =>
  (((await redis.call("COMMAND", "INFO", command)) as ReadonlyArray<unknown>)[0] ?? null) !== null

const keyed = (text: string): string =>
  `if redis.call('EXISTS', KEYS[1]) == 0 then ${text} end return redis.call('DEL', KEYS[1])`

export const features: ReadonlyArray<Feature> = [
  {
    title: "a script may write after it has asked for the time",
    has: accepts("EVAL", keyed("redis.call('SET', KEYS[1], redis.call('TIME')[1])"), 1, "effect-redis-lock:feature")
  },
  {
    title: "scripts in `MULTI`",
    has: async (redis) => {
      const replies = await redis
        .multi()
        .eval("return 1", 0)
        .exec()
        .catch(() => null)
      return replies?.[0]?.[1] === 1
    }
  },
  { title: "RESP3", has: accepts("HELLO", 3) },
  {
    title: "users with permissions for channels",
    has: accepts("ACL", "SETUSER", "effect-redis-lock:feature", "reset", "resetchannels", "~a:*", "&a:*", "+get")
  },
  { title: "sharded pub/sub", has: knows("SSUBSCRIBE") },
  { title: "`CLIENT TRACKING`: it reports a loss", has: accepts("CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP") },
  { title: "`WAIT`: grants that replicas have", has: knows("WAIT") },
  { title: "`FAILOVER`: a planned one that loses nothing", has: knows("FAILOVER") },
  {
    title: "its time in `INFO`, for the warning about clocks",
    has: async (redis) => (await redis.info()).includes("server_time_usec:")
  }
]

/** Name and version, as in the table: "Valkey 9.1.2". */
export const nameOf = async (redis: Redis): Promise<string> => {
  const info = await redis.info()
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1]
  const [dragonfly, keydb, valkey] = [
    field("dragonfly_version"),
    /^executable:.*keydb/m.test(info) ? field("redis_version") : undefined,
    field("valkey_version")
  ]
  if (dragonfly !== undefined) return `Dragonfly ${dragonfly.replace(/^df-v?/, "")}`
  if (keydb !== undefined) return `KeyDB ${keydb}`
  return valkey === undefined ? `Redis ${field("redis_version")}` : `Valkey ${valkey}`
}

/** The titles of those that a server has. */
export const featuresOf = async (url: string): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const { has, title } of features) {
    const redis = new Redis(url)
    try {
      if (await has(redis)) found.push(title)
      await redis.call("ACL", "DELUSER", "effect-redis-lock:feature").catch(() => {})
    } finally {
      redis.disconnect()
    }
  }
  return found
}
