/**
 * The commands of Redis that the scripts of `lua/` use, on a keyspace. Strings hold a byte in each character.
 */
import type { Keyspace } from "./Keyspace.ts"

/** What a command replies, as Redis converts it for a script. */
export type CommandReply = number | string | false | { readonly ok: string } | ReadonlyArray<CommandReply>

type Command = (db: Keyspace, args: ReadonlyArray<string>) => CommandReply

const ok = { ok: "OK" } as const

const orFalse = <A>(value: A | undefined): A | false => value ?? false

const integer = (text: string): number => {
  const value = Number(text)
  if (text === "" || !Number.isFinite(value)) throw new Error("ERR value is not an integer or out of range")
  return value
}

const score = (text: string): number => {
  const value = text === "+inf" ? Number.POSITIVE_INFINITY : text === "-inf" ? Number.NEGATIVE_INFINITY : Number(text)
  if (text === "" || Number.isNaN(value)) throw new Error("ERR value is not a valid float")
  return value
}

/** Whether a score is above a lower bound, or below an upper one; `(` excludes the bound itself. */
const isWithin = (value: number, from: string, to: string): boolean => {
  const [least, most] = [score(from.replace(/^\(/, "")), score(to.replace(/^\(/, ""))]
  return (from.startsWith("(") ? value > least : value >= least) && (to.startsWith("(") ? value < most : value <= most)
}

/** A range of positions, the negative ones from the end. */
const slice = <A>(items: ReadonlyArray<A>, from: string, to: string): ReadonlyArray<A> => {
  const at = (text: string) => (integer(text) < 0 ? Math.max(0, items.length + integer(text)) : integer(text))
  const last = integer(to) < 0 ? items.length + integer(to) : integer(to)
  return items.slice(at(from), last + 1)
}

type Scored = readonly [member: string, score: number]

const range = (scored: ReadonlyArray<Scored>, options: ReadonlyArray<string>): ReadonlyArray<string> => {
  const limit = options.indexOf("LIMIT")
  const limited =
    limit === -1 ? scored : scored.slice(integer(options[limit + 1]!)).slice(0, integer(options[limit + 2]!))
  return options.includes("WITHSCORES")
    ? limited.flatMap(([member, score]) => [member, String(score)])
    : limited.map(([member]) => member)
}

const byScore = (db: Keyspace, key: string, from: string, to: string) =>
  db.zset(key).filter(([, value]) => isWithin(value, from, to))

const flat = (fields: ReadonlyMap<string, string> | undefined) => [...(fields ?? [])].flat()

const commands: Readonly<Record<string, Command>> = {
  TIME: (db) => {
    const micros = db.timeMicros()
    return [String(Math.floor(micros / 1e6)), String(micros % 1e6)]
  },
  EXISTS: (db, keys) => keys.filter((key) => db.exists(key)).length,
  DEL: (db, keys) => keys.filter((key) => db.delete(key)).length,
  TYPE: (db, [key]) => ({ ok: db.type(key!) }),
  PTTL: (db, [key]) => db.pttl(key!),
  PEXPIRE: (db, [key, millis]) => {
    if (!db.exists(key!)) return 0
    db.expire(key!, integer(millis!))
    return 1
  },
  PERSIST: (db, [key]) => (db.persist(key!) ? 1 : 0),

  GET: (db, [key]) => orFalse(db.getString(key!)),
  SET: (db, [key, text, ...options]) => {
    const life = options.indexOf("PX")
    const before = options.includes("GET") ? orFalse(db.getString(key!)) : ok
    const left = options.includes("KEEPTTL") ? db.pttl(key!) : -1
    db.setString(key!, text!, life === -1 ? (left < 0 ? undefined : left) : integer(options[life + 1]!))
    return before
  },
  INCR: (db, [key]) => db.incrBy(key!, 1),
  INCRBY: (db, [key, by]) => db.incrBy(key!, integer(by!)),

  HGET: (db, [key, field]) => orFalse(db.hash(key!)?.get(field!)),
  HMGET: (db, [key, ...fields]) => fields.map((field) => orFalse(db.hash(key!)?.get(field))),
  HGETALL: (db, [key]) => flat(db.hash(key!)),
  HKEYS: (db, [key]) => [...(db.hash(key!)?.keys() ?? [])],
  HVALS: (db, [key]) => [...(db.hash(key!)?.values() ?? [])],
  HLEN: (db, [key]) => db.hash(key!)?.size ?? 0,
  HEXISTS: (db, [key, field]) => (db.hash(key!)?.has(field!) === true ? 1 : 0),
  HRANDFIELD: (db, [key, count]) => [...(db.hash(key!)?.keys() ?? [])].slice(0, integer(count!)),
  HSET: (db, [key, ...pairs]) => {
    let added = 0
    for (let i = 0; i < pairs.length; i += 2) {
      if (db.hash(key!)?.has(pairs[i]!) !== true) added++
      db.hset(key!, pairs[i]!, pairs[i + 1]!)
    }
    return added
  },
  HDEL: (db, [key, ...fields]) => fields.filter((field) => db.hdel(key!, field)).length,

  LLEN: (db, [key]) => db.list(key!).length,
  LINDEX: (db, [key, at]) => orFalse(slice(db.list(key!), at!, at!)[0]),
  LRANGE: (db, [key, from, to]) => slice(db.list(key!), from!, to!),
  RPUSH: (db, [key, item]) => {
    db.rpush(key!, item!)
    return db.list(key!).length
  },
  LPOP: (db, [key]) => {
    const [first] = db.list(key!)
    db.lpop(key!)
    return orFalse(first)
  },
  LREM: (db, [key, , item]) => {
    const before = db.list(key!).length
    db.lrem(key!, item!)
    return before - db.list(key!).length
  },

  ZCARD: (db, [key]) => db.zset(key!).length,
  ZSCORE: (db, [key, member]) => {
    const found = db.zscore(key!, member!)
    return found === undefined ? false : String(found)
  },
  ZADD: (db, [key, ...rest]) => {
    const isOption = (text: string) => ["NX", "XX", "GT", "LT"].includes(text)
    const options = rest.slice(
      0,
      rest.findIndex((text) => !isOption(text))
    )
    const pairs = rest.slice(options.length)
    let added = 0
    for (let i = 0; i < pairs.length; i += 2) {
      const [value, member] = [score(pairs[i]!), pairs[i + 1]!]
      const before = db.zscore(key!, member)
      if (before === undefined ? options.includes("XX") : options.includes("NX")) continue
      if (before !== undefined && options.includes("GT") && value <= before) continue
      if (before !== undefined && options.includes("LT") && value >= before) continue
      if (before === undefined) added++
      db.zadd(key!, value, member)
    }
    return added
  },
  ZINCRBY: (db, [key, by, member]) => {
    const sum = (db.zscore(key!, member!) ?? 0) + score(by!)
    db.zadd(key!, sum, member!)
    return String(sum)
  },
  ZREM: (db, [key, ...members]) => members.filter((member) => db.zrem(key!, member)).length,
  ZREMRANGEBYRANK: (db, [key, from, to]) => {
    const members = slice(db.zset(key!), from!, to!)
    for (const [member] of members) db.zrem(key!, member)
    return members.length
  },
  ZCOUNT: (db, [key, from, to]) => byScore(db, key!, from!, to!).length,
  ZRANGE: (db, [key, from, to, ...options]) =>
    range(options.includes("BYSCORE") ? byScore(db, key!, from!, to!) : slice(db.zset(key!), from!, to!), options),
  ZRANGEBYSCORE: (db, [key, from, to, ...options]) => range(byScore(db, key!, from!, to!), options),

  PUBSUB: (db, [, ...channels]) => channels.flatMap((channel) => [channel, db.listeners(channel)])
}

/** Runs a command; a failure is an `Error` whose message is Redis's. */
export const runCommand = (db: Keyspace, [name, ...args]: ReadonlyArray<string>): CommandReply => {
  const command = commands[name!.toUpperCase()]
  if (command === undefined) throw new Error(`ERR Unknown Redis command called from script: ${name}`)
  return command(db, args)
}
