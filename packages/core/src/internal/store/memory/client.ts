/**
 * The operations of `lua/client/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import type { MemoryOperation } from "./MemoryOperation.ts"

export const setLabel: MemoryOperation = (db, [key], [label, life]) => {
  db.setString(key!, label!, Number(life))
  return 1
}

export const label: MemoryOperation = (db, [key]) => db.getString(key!) ?? null

export const tell: MemoryOperation = (db, [key]) => {
  db.publish(key!, "taken")
  return 1
}
