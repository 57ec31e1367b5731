/**
 * The operations of `lua/lock/` and `lua/fenced_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import type { Reply } from "../../../RedisDriver.ts"
import { type Keyspace, WrongType } from "./keyspace/Keyspace.ts"
import type { MemoryOperation } from "./MemoryOperation.ts"
import { never } from "./counters/permitSemaphore.ts"

export const raiseExpiry = (db: Keyspace, key: string, lease: number): void => {
  const left = db.pttl(key)
  if (left >= 0 && left < lease) db.expire(key, lease)
}

/** Tokens below are counters of a FencedLock, those above are microseconds of server time. */
const counterLimit = 1_000_000_000_000_000

/** `lua/include/tokens/last_token.lua` */
export const lastToken = (db: Keyspace, token: string): number | undefined => {
  const text = db.getString(token)
  if (text === undefined) return undefined
  const last = text.trim() === "" ? Number.NaN : Number(text)
  if (!Number.isSafeInteger(last)) throw new WrongType(`something that is no fencing token, under ${token}`)
  return last
}

/** `lua/include/tokens/next_token.lua` */
export const nextToken = (db: Keyspace, lock: string, token: string, life: number, atLeast?: string): number => {
  if (token === lock) return 0
  const last = lastToken(db, token)
  const isCounter = last !== undefined && last < counterLimit
  const next = isCounter ? last + 1 : Math.max(last === undefined ? 0 : last + 1, db.timeMicros(), Number(atLeast ?? 0))
  db.setString(token, String(next), isCounter ? undefined : life)
  return next
}

/** `lua/include/tokens/granted.lua` */
export const granted = (db: Keyspace, token: number, atLeast?: string): Reply => {
  const micros = db.timeMicros()
  return token === Math.max(micros, Number(atLeast ?? 0)) ? micros : ["granted", token, String(micros)]
}

/** The token of an owner that holds the lock already. */
export const tokenBefore = (db: Keyspace, lock: string, token: string): number =>
  token === lock ? 0 : Number(db.getString(token) ?? 1) || 1

/** `lua/include/tokens/granted_before.lua` */
export const grantedBefore = (db: Keyspace, lock: string, token: string): Reply => [
  "granted",
  tokenBefore(db, lock, token),
  String(db.timeMicros())
]

/** How long places are kept after the last request, milliseconds. */
const placesLife = 60_000

/** Of the turns of clients that take no places: the interval, the duration, and what is added to the time of the last: `lua/include/hand_over/last_turn.lua` */
export const [turnEvery, turnLasts, behindAll] = [100_000, 10_000, 4e15]

/** Of the owners that spin: the interval of their turns, how long the lock is reserved, and what is taken from their times: `lua/include/hand_over/spinners_turn.lua` */
const [spinnersTurnEvery, spinnersLease, beforeAll] = [1_000_000, 500, 4e15]

/** The microseconds since the last turn of the clients that take no places: `lua/include/hand_over/last_turn.lua` */
const sinceLastTurn = (db: Keyspace, places: string): number => {
  const last = db.zscore(places, "")
  const since = last === undefined ? behindAll : db.timeMicros() - (last - behindAll)
  return since < 0 ? behindAll : since
}

/** The milliseconds for which clients that take places are refused. */
export const leftOfOthersTurn = (db: Keyspace, places: string | undefined): number | undefined => {
  const left = places === undefined ? 0 : turnLasts - sinceLastTurn(db, places)
  return left > 0 ? Math.ceil(left / 1000) : undefined
}

/** Takes a place behind all others, also behind those that were taken at the same time by a clock that stands still in tests. */
export const takePlace = (db: Keyspace, places: string, member: string, spins = false): void => {
  const last = db.zset(places).findLast(([other]) => other !== "")?.[1] ?? 0
  const score = spins ? db.timeMicros() - beforeAll : Math.max(db.timeMicros(), last + 1)
  if (db.zscore(places, member) === undefined) db.zadd(places, score, member)
  db.expire(places, placesLife)
}

/** `lua/include/hand_over/taken.lua` */
const taken = (
  db: Keyspace,
  [lock, token, places]: ReadonlyArray<string>,
  owner: string,
  { hasAsked, spins }: { readonly hasAsked: boolean; readonly spins: boolean }
): Reply | undefined => {
  const fields = db.hash(lock!)
  const left = fields === undefined ? leftOfOthersTurn(db, places) : db.pttl(lock!)
  if (left === undefined) {
    if (hasAsked) db.zrem(places!, owner)
    return undefined
  }
  if (fields?.has(owner) === true) return hasAsked ? undefined : grantedBefore(db, lock!, token!)
  if (fields?.has("mode") === true) throw new WrongType()
  if (places !== undefined) takePlace(db, places, owner, spins)
  return [left, fields === undefined ? "" : [...fields.keys()][0]!]
}

export const acquire: MemoryOperation = (db, keys, args) => {
  const [lock, token, places] = keys as [string, string, string | undefined]
  const [owner, lease, tokenLife, atLeast, asked, spins] = args as [
    string,
    string,
    string,
    ...Array<string | undefined>
  ]
  const hasAsked = places !== undefined && asked === "1"
  const answer = taken(db, keys, owner, { hasAsked, spins: spins === "1" })
  if (answer !== undefined) return answer
  const next = nextToken(db, lock, token, Number(tokenLife), atLeast)
  db.hset(lock, owner, "1")
  db.expire(lock, Number(lease))
  return granted(db, next, atLeast)
}

export const acquireFenced: MemoryOperation = (db, keys, args) => {
  const [lock, token, places] = keys as [string, string, string | undefined]
  const [owner, lease, last] = args as [string, string, string | undefined]
  const answer = taken(db, keys, owner, { hasAsked: places !== undefined && last === "1", spins: false })
  if (answer !== undefined) return answer
  const next = (lastToken(db, token) ?? 0) + 1
  db.setString(token, String(next))
  db.hset(lock, owner, "1")
  db.expire(lock, Number(lease))
  return ["granted", next, String(db.timeMicros())]
}

export const hold: MemoryOperation = (db, [lock], [owner, count, lease]) => {
  if (db.hash(lock!)?.has(owner!) !== true) return 0
  db.hset(lock!, owner!, count!)
  raiseExpiry(db, lock!, Number(lease))
  return 1
}

/** `lua/include/hand_over/others_turn.lua` */
export const isOthersTurn = (db: Keyspace, channel: string, places: string): boolean => {
  if (db.listeners(channel) <= db.listeners(`${channel}:ours`)) return false
  const since = sinceLastTurn(db, places)
  if (since >= turnLasts && since < turnEvery) return false
  if (since >= turnEvery) {
    db.zadd(places, db.timeMicros() + behindAll, "")
    if (db.zset(places).length === 1) db.expire(places, turnEvery / 1000)
  }
  db.publish(`${channel}:ours`, "")
  return true
}

/** `lua/include/hand_over/spinners_turn.lua` */
const isSpinnersTurn = (db: Keyspace, lock: string, places: string): boolean => {
  const [owner, since] = db.zset(places).find(([member, score]) => score < 0 && member !== "~") ?? []
  if (owner === undefined) {
    db.zrem(places, "~")
    return false
  }
  const now = db.timeMicros() - beforeAll
  const sinceTurn = now - beforeAll - (db.zscore(places, "~") ?? Number.NEGATIVE_INFINITY)
  if (leftOfOthersTurn(db, places) !== undefined) return false
  if (now - since! < spinnersTurnEvery || (sinceTurn >= 0 && sinceTurn < spinnersTurnEvery)) return false
  db.zadd(places, now - beforeAll, "~")
  db.zrem(places, owner)
  db.hset(lock, owner, "1")
  db.expire(lock, spinnersLease)
  return true
}

/** `lua/include/hand_over/hand_over.lua` */
const handOver = (db: Keyspace, lock: string, channel: string, places: string, lease: string): boolean => {
  for (let passedOver = 0; passedOver < 100; passedOver++) {
    const owner = db.zset(places).find(([, score]) => score >= 0)?.[0]
    if (owner === undefined) return false
    if (owner === "") {
      if (db.zset(places)[0]![0] === "") db.expire(places, turnEvery / 1000)
      return false
    }
    db.zrem(places, owner)
    const own = `${channel}:${owner.slice(0, 36)}`
    if (db.listeners(own) > 0) {
      db.hset(lock, owner, "1")
      db.expire(lock, Number(lease))
      db.publish(own, "0")
      return true
    }
  }
  return false
}

export const release: MemoryOperation = (db, [lock, channel, places], [owner, publish, lease]) => {
  const released = db.hdel(lock!, owner!) ? 1 : 0
  if (released === 0) {
    if (places !== undefined) db.zrem(places, owner!)
    if (db.exists(lock!)) return -1
    if (places === undefined) return 0
  }
  if (publish === "") return released
  if (places !== undefined && db.exists(places)) {
    if (isSpinnersTurn(db, lock!, places)) return released
    if (!isOthersTurn(db, channel!, places) && handOver(db, lock!, channel!, places, lease!)) return released
  } else if (places !== undefined && db.listeners(channel!) > 0) {
    isOthersTurn(db, channel!, places)
  }
  const listeners = db.publish(channel!, "0")
  return released === 1 ? 1 + listeners : 0
}

export const keep: MemoryOperation = (db, [lock], [owner, millis]) => {
  const kept = `${owner}:kept`
  if (!db.hdel(lock!, owner!)) return db.hash(lock!)?.has(kept) === true ? 1 : db.exists(lock!) ? -1 : 0
  db.hset(lock!, kept, "1")
  db.expire(lock!, Number(millis))
  return 1
}

export const renew: MemoryOperation = (db, locks, [lease, ...owners]) =>
  locks.map((lock, i) => {
    if (db.type(lock) !== "hash" || !db.hash(lock)!.has(owners[i]!)) return 0
    raiseExpiry(db, lock, Number(lease))
    return 1
  })

/** Other kinds must not free a read-write lock. */
export const refuseReadWrite = (db: Keyspace, lock: string): void => {
  if (db.hash(lock)?.has("mode")) throw new WrongType()
}

export const forceRelease: MemoryOperation = (db, [lock, channel]) => {
  refuseReadWrite(db, lock!)
  if (!db.delete(lock!)) return 0
  db.publish(channel!, "0")
  return 1
}

export const inspect: MemoryOperation = (db, [lock, token]) => [
  db.pttl(lock!),
  db.getString(token!) ?? null,
  [...(db.hash(lock!) ?? [])].flat()
]

/** The members of a zset whose time has not come yet, with the milliseconds until then. */
const live = (db: Keyspace, key: string, most: number) =>
  db
    .zset(key)
    .filter(([, ends]) => ends > db.timeMillis())
    .slice(0, most)
    .map(([member, ends]) => [member, ends >= never ? -1 : ends - db.timeMillis()] as const)

export const look: MemoryOperation = (db, [lock, token, queue, readers, writers, ids, places], [most]) => {
  const type = db.type(lock!)
  const count = Number(most)
  const placed = db.zset(places!).filter(([owner]) => owner !== "" && owner !== "~")
  return [
    type,
    db.pttl(lock!),
    db.getString(token!) ?? null,
    type === "hash" ? [...db.hash(lock!)!].flat() : [],
    type === "string" ? db.getString(lock!)! : null,
    db.list(queue!).slice(0, count),
    db.list(queue!).length,
    live(db, readers!, count).flat(),
    live(db, writers!, count).map(([client]) => client),
    live(db, ids!, count).flat(),
    live(db, ids!, Number.POSITIVE_INFINITY).length,
    placed.slice(0, count).flatMap(([owner, at]) => [owner, db.timeMicros() - (at < 0 ? at + beforeAll : at)]),
    placed.length,
    db.timeMicros()
  ]
}

export const raiseToken: MemoryOperation = (db, [, token], [least, life]) => {
  if ((lastToken(db, token!) ?? 0) < Number(least)) {
    db.setString(token!, least!, Number(least) < counterLimit || life === "0" ? undefined : Number(life))
  }
  return 1
}

export const found: MemoryOperation = (db, [name]) => {
  const type = db.type(name!)
  return type === "hash" && db.hash(name!)!.has("mode") ? "read-write lock" : type
}
