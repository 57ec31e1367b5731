/**
 * What a server keeps when all is over.
 */
import { runCommand } from "./memory.ts"
import type { Server } from "./network.ts"

/** Keys without expiry: how many permits are free, the counter of a fenced lock, and what a leader has proclaimed. */
const staysForEver = (key: string): boolean =>
  ["permits", "anonymous", "redisson_lock_token:{fenced}", "effect_redis_lock_record:{leader}:leader"].includes(key)

/** Keys that stay for a while: tokens, labels of clients, markers of grants, records, and until when readers were noted to hold. */
const staysForAWhile = (key: string): boolean =>
  [
    "redisson_lock_token",
    "effect_redis_lock_client",
    "effect_redis_lock_grant",
    "effect_redis_lock_readers",
    "effect_redis_lock_record"
  ].some((kept) => key.startsWith(kept))

/** Whether a key may be there when all is over. */
export const isKept = ({ db }: Server, key: string): boolean =>
  staysForEver(key) || (staysForAWhile(key) && db.pttl(key) !== -1)

/** How long the places of those who wait for a lock or for permits, and when others last had their turn of it, are kept after the last request for a place. */
const placesLifeMillis = 60_000

/** How long a server still keeps what it forgets by itself, milliseconds: places, unless somebody asks for one. */
export const forgottenAfter = ({ db }: Server): number =>
  db.keys().some((key) => /^effect_redis_lock_(?:permit_)?(?:places|wants):/.test(key)) ? placesLifeMillis : 0

/** Gives back permits whose lease has ended, as the next request would. */
export const reap = ({ db }: Server): void => {
  const key = "{permits}:timeout"
  const ended = [...(db.get(key, "zset") ?? [])].filter(([, expiry]) => expiry <= db.timeMicros() / 1000)
  if (ended.length === 0) return
  runCommand(db, ["ZREM", key, ...ended.map(([id]) => id)])
  runCommand(db, ["INCRBY", "permits", String(ended.length)])
}

/** What a key has, for a message. */
export const look = ({ db }: Server, key: string): unknown => {
  const ttl = db.pttl(key)
  const type = db.type(key)
  if (type === "none") return { ttl }
  if (type === "zset") {
    return { ttl, zset: Array.from(db.get(key, type)!, ([member, score]) => [member, score - db.timeMicros() / 1000]) }
  }
  const value = db.get(key, type)!
  return { ttl, [type]: value instanceof Map ? [...value] : value }
}
