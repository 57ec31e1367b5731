/**
 * The operations of `lua/lock/` and `lua/fenced_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import type { Reply } from "../../../RedisDriver.ts"
import { type Keyspace, WrongType } from "./Keyspace.ts"
import type { MemoryOperation } from "./MemoryOperation.ts"

export const raiseExpiry = (db: Keyspace, key: string, lease: number): void => {
  const left = db.pttl(key)
  if (left >= 0 && left < lease) db.expire(key, lease)
}

/** Tokens below are counters of a FencedLock, those above are microseconds of server time. */
const counterLimit = 1_000_000_000_000_000

/** `lua/include/last_token.lua` */
export const lastToken = (db: Keyspace, token: string): number | undefined => {
  const text = db.getString(token)
  if (text === undefined) return undefined
  const last = text.trim() === "" ? Number.NaN : Number(text)
  if (!Number.isSafeInteger(last)) throw new WrongType(`something that is no fencing token, under ${token}`)
  return last
}

/** `lua/include/next_token.lua` */
export const nextToken = (db: Keyspace, lock: string, token: string, life: number, atLeast?: string): number => {
  if (token === lock) return 0
  const last = lastToken(db, token)
  const isCounter = last !== undefined && last < counterLimit
  const next = isCounter ? last + 1 : Math.max(last === undefined ? 0 : last + 1, db.timeMicros(), Number(atLeast ?? 0))
  db.setString(token, String(next), isCounter ? undefined : life)
  return next
}

/** `lua/include/granted.lua` */
export const granted = (db: Keyspace, token: number): Reply =>
  token === db.timeMicros() ? token : ["granted", token, String(db.timeMicros())]

/** The token of an owner that holds the lock already. */
export const tokenBefore = (db: Keyspace, lock: string, token: string): number =>
  token === lock ? 0 : Number(db.getString(token) ?? 1) || 1

/** `lua/include/granted_before.lua` */
export const grantedBefore = (db: Keyspace, lock: string, token: string): Reply => [
  "granted",
  tokenBefore(db, lock, token),
  String(db.timeMicros())
]

/** `lua/include/taken.lua` */
export const taken = (db: Keyspace, lock: string, token: string, owner: string): Reply | undefined => {
  const fields = db.hash(lock)
  if (fields === undefined) return undefined
  if (fields.has(owner)) return grantedBefore(db, lock, token)
  if (fields.has("mode")) throw new WrongType()
  return [db.pttl(lock), [...fields.keys()][0]!]
}

export const acquire: MemoryOperation = (db, [lock, token], [owner, lease, tokenLife, atLeast]) => {
  const answer = taken(db, lock!, token!, owner!)
  if (answer !== undefined) return answer
  const next = nextToken(db, lock!, token!, Number(tokenLife), atLeast)
  db.hset(lock!, owner!, "1")
  db.expire(lock!, Number(lease))
  return granted(db, next)
}

export const acquireFenced: MemoryOperation = (db, [lock, token], [owner, lease]) => {
  const answer = taken(db, lock!, token!, owner!)
  if (answer !== undefined) return answer
  const next = (lastToken(db, token!) ?? 0) + 1
  db.setString(token!, String(next))
  db.hset(lock!, owner!, "1")
  db.expire(lock!, Number(lease))
  return granted(db, next)
}

export const hold: MemoryOperation = (db, [lock], [owner, count, lease]) => {
  if (db.hash(lock!)?.has(owner!) !== true) return 0
  db.hset(lock!, owner!, count!)
  raiseExpiry(db, lock!, Number(lease))
  return 1
}

export const release: MemoryOperation = (db, [lock, channel], [owner, publish]) => {
  if (db.hdel(lock!, owner!)) return publish === "" ? 1 : 1 + db.publish(channel!, "0")
  return db.exists(lock!) ? -1 : 0
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
    .map(([member, ends]) => [member, ends - db.timeMillis()] as const)

export const look: MemoryOperation = (db, [lock, token, queue, readers, writers, ids], [most]) => {
  const type = db.type(lock!)
  const count = Number(most)
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
    live(db, ids!, Number.POSITIVE_INFINITY).length
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
