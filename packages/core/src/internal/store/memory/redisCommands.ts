/**
 * The commands of Redis that the scripts of `lua/` use, on a keyspace. Strings hold a byte in each character.
 */
import type { Keyspace, Values } from "./Keyspace.ts"

/** What a command replies, as Redis converts it for a script. */
export type CommandReply = number | string | false | { readonly ok: string } | ReadonlyArray<CommandReply>

type Command = (db: Keyspace, args: ReadonlyArray<string>) => CommandReply

const ok = { ok: "OK" } as const

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

/** The members of a sorted set with their scores, lowest first. */
const sorted = (db: Keyspace, key: string): ReadonlyArray<Scored> =>
  [...(db.get(key, "zset") ?? [])].sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))

const byScore = (db: Keyspace, key: string, from: string, to: string) =>
  sorted(db, key).filter(([, value]) => isWithin(value, from, to))

/** Removes from a value, and the key when nothing is left. The result says how much was removed. */
const remove = <T extends "hash" | "list" | "zset">(
  db: Keyspace,
  key: string,
  type: T,
  from: (value: Values[T]) => number
): number => {
  const value = db.get(key, type)
  if (value === undefined) return 0
  const removed = from(value)
  db.deleteIfEmpty(key)
  return removed
}

/** Adds to a number, from zero; its expiry stays as it is. */
const incrementBy = (db: Keyspace, key: string, by: number): number => {
  const before = db.get(key, "string") ?? "0"
  const sum = Number(before) + by
  if (!/^-?\d+$/.test(before) || !Number.isSafeInteger(sum)) {
    throw new Error("ERR value is not an integer or out of range")
  }
  db.replace(key, String(sum))
  return sum
}

const commands: Readonly<Record<string, Command>> = {
  TIME: (db) => {
    const micros = db.timeMicros()
    return [String(Math.floor(micros / 1e6)), String(micros % 1e6)]
  },
  EXISTS: (db, keys) => keys.filter((key) => db.exists(key)).length,
  DEL: (db, keys) => keys.filter((key) => db.delete(key)).length,
  TYPE: (db, [key]) => ({ ok: db.type(key!) }),
  PTTL: (db, [key]) => db.pttl(key!),
  PEXPIRE: (db, [key, millis, condition]) => {
    const left = db.pttl(key!)
    // what never expires lasts longest
    if (condition === "GT" && (left < 0 || left >= integer(millis!))) return 0
    return db.expire(key!, integer(millis!)) ? 1 : 0
  },
  PERSIST: (db, [key]) => (db.persist(key!) ? 1 : 0),

  GET: (db, [key]) => db.get(key!, "string") ?? false,
  SET: (db, [key, text, ...options]) => {
    const life = options.indexOf("PX")
    const before = options.includes("GET") ? (db.get(key!, "string") ?? false) : ok
    const left = options.includes("KEEPTTL") ? db.pttl(key!) : -1
    db.set(key!, "string", text!, life === -1 ? (left < 0 ? undefined : left) : integer(options[life + 1]!))
    return before
  },
  INCR: (db, [key]) => incrementBy(db, key!, 1),
  INCRBY: (db, [key, by]) => incrementBy(db, key!, integer(by!)),

  HGET: (db, [key, field]) => db.get(key!, "hash")?.get(field!) ?? false,
  HGETALL: (db, [key]) => [...(db.get(key!, "hash") ?? [])].flat(),
  HKEYS: (db, [key]) => [...(db.get(key!, "hash")?.keys() ?? [])],
  HLEN: (db, [key]) => db.get(key!, "hash")?.size ?? 0,
  HEXISTS: (db, [key, field]) => (db.get(key!, "hash")?.has(field!) === true ? 1 : 0),
  HRANDFIELD: (db, [key, count]) => [...(db.get(key!, "hash")?.keys() ?? [])].slice(0, integer(count!)),
  HSET: (db, [key, ...pairs]) => {
    const hash = db.open(key!, "hash")
    const before = hash.size
    for (let i = 0; i < pairs.length; i += 2) hash.set(pairs[i]!, pairs[i + 1]!)
    return hash.size - before
  },
  HDEL: (db, [key, ...fields]) =>
    remove(db, key!, "hash", (hash) => fields.filter((field) => hash.delete(field)).length),

  LLEN: (db, [key]) => db.get(key!, "list")?.length ?? 0,
  LINDEX: (db, [key, at]) => slice(db.get(key!, "list") ?? [], at!, at!)[0] ?? false,
  LRANGE: (db, [key, from, to]) => slice(db.get(key!, "list") ?? [], from!, to!),
  RPUSH: (db, [key, item]) => db.open(key!, "list").push(item!),
  LPOP: (db, [key]) => {
    const first = db.get(key!, "list")?.[0] ?? false
    remove(db, key!, "list", (list) => list.splice(0, 1).length)
    return first
  },
  LREM: (db, [key, , item]) =>
    remove(db, key!, "list", (list) => {
      const kept = list.filter((other) => other !== item)
      return list.splice(0, list.length, ...kept).length - kept.length
    }),

  ZCARD: (db, [key]) => db.get(key!, "zset")?.size ?? 0,
  ZSCORE: (db, [key, member]) => {
    const found = db.get(key!, "zset")?.get(member!)
    return found === undefined ? false : String(found)
  },
  ZADD: (db, [key, ...rest]) => {
    const at = rest.findIndex((text) => !["NX", "XX", "GT", "LT"].includes(text))
    const [options, pairs] = [rest.slice(0, at), rest.slice(at)]
    const scores = db.open(key!, "zset")
    const size = scores.size
    for (let i = 0; i < pairs.length; i += 2) {
      const [value, member] = [score(pairs[i]!), pairs[i + 1]!]
      const before = scores.get(member)
      if (before === undefined ? options.includes("XX") : options.includes("NX")) continue
      if (before !== undefined && options.includes("GT") && value <= before) continue
      if (before !== undefined && options.includes("LT") && value >= before) continue
      scores.set(member, value)
    }
    db.deleteIfEmpty(key!)
    return scores.size - size
  },
  ZINCRBY: (db, [key, by, member]) => {
    const scores = db.open(key!, "zset")
    const sum = (scores.get(member!) ?? 0) + score(by!)
    scores.set(member!, sum)
    return String(sum)
  },
  ZREM: (db, [key, ...members]) =>
    remove(db, key!, "zset", (scores) => members.filter((member) => scores.delete(member)).length),
  ZREMRANGEBYRANK: (db, [key, from, to]) =>
    remove(
      db,
      key!,
      "zset",
      (scores) => slice(sorted(db, key!), from!, to!).filter(([member]) => scores.delete(member)).length
    ),
  ZCOUNT: (db, [key, from, to]) => byScore(db, key!, from!, to!).length,
  ZRANGE: (db, [key, from, to, ...options]) =>
    range(options.includes("BYSCORE") ? byScore(db, key!, from!, to!) : slice(sorted(db, key!), from!, to!), options),
  ZRANGEBYSCORE: (db, [key, from, to, ...options]) => range(byScore(db, key!, from!, to!), options),

  PUBSUB: (db, [, ...channels]) => channels.flatMap((channel) => [channel, db.listeners(channel)])
}

/** Runs a command; a failure is an `Error` whose message is Redis's. */
export const runCommand = (db: Keyspace, [name, ...args]: ReadonlyArray<string>): CommandReply => {
  const command = commands[name!.toUpperCase()]
  if (command === undefined) throw new Error(`ERR Unknown Redis command called from script: ${name}`)
  return command(db, args)
}
