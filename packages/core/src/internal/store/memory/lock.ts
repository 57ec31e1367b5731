/**
 * The operations of `lua/lock/` and `lua/fenced_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import type { Reply } from "../../../RedisDriver.ts"
import { type Keyspace, WrongType } from "./Keyspace.ts"
import type { MemoryOperation } from "./MemoryStore.ts"

export const raiseExpiry = (db: Keyspace, key: string, lease: number): void => {
  const left = db.pttl(key)
  if (left >= 0 && left < lease) db.expire(key, lease)
}

/** Tokens below are counters of a FencedLock, those above are microseconds of server time. */
const counterLimit = 1_000_000_000_000_000

/** `lua/include/next_token.lua` */
export const nextToken = (db: Keyspace, token: string, life: number, atLeast?: string): number => {
  const last = db.getString(token)
  const isCounter = last !== undefined && Number(last) < counterLimit
  const next = isCounter
    ? Number(last) + 1
    : Math.max(last === undefined ? 0 : Number(last) + 1, db.timeMicros(), Number(atLeast ?? 0))
  db.setString(token, String(next), isCounter ? undefined : life)
  return next
}

/** `lua/include/granted.lua` */
export const granted = (db: Keyspace, token: number): Reply =>
  token === db.timeMicros() ? token : ["granted", token, String(db.timeMicros())]

/** `lua/include/taken.lua` */
export const taken = (db: Keyspace, lock: string, token: string, owner: string): Reply | undefined => {
  const fields = db.hash(lock)
  if (fields === undefined) return undefined
  if (fields.has(owner)) return ["granted", Number(db.getString(token) ?? 1), String(db.timeMicros())]
  if (fields.has("mode")) throw new WrongType()
  return [db.pttl(lock), [...fields.keys()][0]!]
}

export const acquire: MemoryOperation = (db, [lock, token], [owner, lease, tokenLife, atLeast]) => {
  const answer = taken(db, lock!, token!, owner!)
  if (answer !== undefined) return answer
  const next = nextToken(db, token!, Number(tokenLife), atLeast)
  db.hset(lock!, owner!, "1")
  db.expire(lock!, Number(lease))
  return granted(db, next)
}

export const acquireFenced: MemoryOperation = (db, [lock, token], [owner, lease]) => {
  const answer = taken(db, lock!, token!, owner!)
  if (answer !== undefined) return answer
  const next = Number(db.getString(token!) ?? 0) + 1
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

/** A read-write lock is not for the other kinds to free. */
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

export const raiseToken: MemoryOperation = (db, [, token], [least, life]) => {
  if (Number(db.getString(token!) ?? 0) < Number(least)) {
    db.setString(token!, least!, Number(least) < counterLimit || life === "0" ? undefined : Number(life))
  }
  return 1
}

export const found: MemoryOperation = (db, [name]) => {
  const type = db.type(name!)
  return type === "hash" && db.hash(name!)!.has("mode") ? "read-write lock" : type
}
