/**
 * How the releases of a read-write lock hand it over: `lua/include/hand_over/` for both sides.
 */
import type { Reply } from "../../../RedisDriver.ts"
import type { Keyspace } from "./keyspace/Keyspace.ts"
import { isOthersTurn, takePlace, turnEvery } from "./lock.ts"

/** `lua/include/hand_over/denied.lua` */
export const denied = (db: Keyspace, places: string | undefined, field: string, denial: Reply): Reply => {
  if (places !== undefined) takePlace(db, places, field)
  return denial
}

/** `lua/include/hand_over/hand_over_sides.lua` */
const handOverSides = (db: Keyspace, keys: ReadonlyArray<string>, lease: number): boolean => {
  const [lock, channel, stem, noted, places] = keys as [string, string, string, string, string]
  let isRead = db.exists(lock)
  if (!isRead) db.delete(noted)
  let isHandedOver = false
  for (let lookedAt = 0; lookedAt < 100; lookedAt++) {
    const field = db.zset(places)[0]?.[0]
    if (field === undefined) break
    if (field === "") {
      db.expire(places, turnEvery / 1000)
      break
    }
    const isWriter = field.endsWith(":write")
    if (isWriter && isRead) return true
    db.zrem(places, field)
    const own = `${channel}:${field.slice(0, 36)}`
    if (db.listeners(own) === 0) continue
    isHandedOver = true
    const left = isRead ? db.pttl(lock) : 0
    db.hset(lock, "mode", isWriter ? "write" : "read")
    db.hset(lock, field, "1")
    if (left !== -1 && left < lease) db.expire(lock, lease)
    db.publish(own, isWriter ? "1" : "0")
    if (isWriter) return true
    isRead = true
    db.setString(`${stem}:${field}:rwlock_timeout:1`, "1", lease)
    db.zadd(noted, db.timeMillis() + lease, field)
    db.expire(noted, Math.max(left, lease))
  }
  return isHandedOver
}

/** `lua/include/hand_over/tell_waiters.lua` */
export const tellWaiters = (
  db: Keyspace,
  keys: ReadonlyArray<string>,
  message: string,
  lease: string | undefined
): number => {
  const [, channel, , , places] = keys as [string, string, string, string, string | undefined]
  if (places === undefined) return db.publish(channel, message)
  if (db.exists(places)) {
    if (!isOthersTurn(db, channel, places) && handOverSides(db, keys, Number(lease))) return 0
  } else if (db.listeners(channel) > 0) {
    isOthersTurn(db, channel, places)
  }
  return db.publish(channel, message)
}
