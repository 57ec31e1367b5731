/**
 * The operations of `lua/latch/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { counter } from "./counter.ts"
import type { MemoryOperation } from "../MemoryOperation.ts"

export const set: MemoryOperation = (db, [latch, channel], [count]) => {
  if (counter(db, latch!) !== undefined) return 0
  db.setString(latch!, count!)
  db.publish(channel!, "1")
  return 1
}

export const countDown: MemoryOperation = (db, [latch, channel]) => {
  if (counter(db, latch!) === undefined) return 0
  const left = db.incrBy(latch!, -1)
  if (left > 0) return left
  db.delete(latch!)
  if (left === 0) db.publish(channel!, "0")
  return 0
}

export const count: MemoryOperation = (db, [latch]) => Math.max(0, counter(db, latch!) ?? 0)

export const remove: MemoryOperation = (db, [latch, channel]) => {
  if (counter(db, latch!) === undefined) return 0
  db.delete(latch!)
  db.publish(channel!, "1")
  db.publish(channel!, "0")
  return 1
}
