/**
 * What a server keeps when all is over.
 */
import type { Server } from "./network.ts"

/**
 * Keys that stay: tokens, how many permits are free, markers of grants, records, and until when readers were noted to hold; and for a
 * minute when those who take no places last had their turn of a lock.
 */
export const isKept = ({ db }: Server, key: string): boolean =>
  key === "permits" ||
  key === "anonymous" ||
  (key.startsWith("effect_redis_lock_places") && db.pttl(key) > 0 && db.zset(key).every(([member]) => member === "")) ||
  ["redisson_lock_token", "effect_redis_lock_grant", "effect_redis_lock_readers", "effect_redis_lock_record"].some(
    (kept) => key.startsWith(kept)
  )

/** Gives back permits whose lease has ended, as the next request would. */
export const reap = ({ db }: Server): void => {
  for (const [id, expiry] of db.zset("{permits}:timeout")) {
    if (expiry > db.timeMillis()) break
    db.zrem("{permits}:timeout", id)
    db.incrBy("permits", 1)
  }
}

/** What a key has, for a message. */
export const look = ({ db }: Server, key: string): unknown => {
  const ttl = db.pttl(key)
  switch (db.type(key)) {
    case "hash":
      return { ttl, hash: [...(db.hash(key) ?? [])] }
    case "list":
      return { ttl, list: db.list(key) }
    case "zset":
      return { ttl, zset: db.zset(key).map(([member, score]) => [member, score - db.timeMillis()]) }
    default:
      return { ttl, string: db.getString(key) }
  }
}
