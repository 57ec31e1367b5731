/**
 * The operations of `lua/lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import type { MemoryOperation } from "./MemoryStore.ts"

const raiseExpiry: (...args: [db: Parameters<MemoryOperation>[0], key: string, lease: number]) => void = (
  db,
  key,
  lease
) => {
  const left = db.pttl(key)
  if (left >= 0 && left < lease) db.expire(key, lease)
}

/** Tokens below are counters of a FencedLock, those above are microseconds of server time. */
const counterLimit = 1_000_000_000_000_000

export const acquire: MemoryOperation = (db, [lock, token], [owner, lease, tokenLife]) => {
  const fields = db.hash(lock!)
  if (fields !== undefined) {
    return fields.has(owner!) ? Number(db.getString(token!) ?? 1) : [db.pttl(lock!), [...fields.keys()][0]!]
  }
  const last = db.getString(token!)
  const now = db.timeMicros()
  const isCounter = last !== undefined && Number(last) < counterLimit
  const next = isCounter ? Number(last) + 1 : Math.max(last === undefined ? 0 : Number(last) + 1, now)
  db.setString(token!, String(next), isCounter ? undefined : Number(tokenLife))
  db.hset(lock!, owner!, "1")
  db.expire(lock!, Number(lease))
  return next
}

export const hold: MemoryOperation = (db, [lock], [owner, count, lease]) => {
  if (db.hash(lock!)?.has(owner!) !== true) return 0
  db.hset(lock!, owner!, count!)
  raiseExpiry(db, lock!, Number(lease))
  return 1
}

export const release: MemoryOperation = (db, [lock, channel], [owner]) => {
  if (db.hdel(lock!, owner!)) return 1 + db.publish(channel!, "0")
  return db.exists(lock!) ? -1 : 0
}

export const renew: MemoryOperation = (db, locks, [lease, ...owners]) =>
  locks.map((lock, i) => {
    try {
      if (db.hash(lock)?.has(owners[i]!) !== true) return 0
    } catch {
      return 0
    }
    raiseExpiry(db, lock, Number(lease))
    return 1
  })

export const forceRelease: MemoryOperation = (db, [lock, channel]) => {
  if (!db.delete(lock!)) return 0
  db.publish(channel!, "0")
  return 1
}

export const inspect: MemoryOperation = (db, [lock, token]) => [
  db.pttl(lock!),
  db.getString(token!) ?? null,
  [...(db.hash(lock!) ?? [])].flat()
]
