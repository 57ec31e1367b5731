/**
 * The operations of `lua/record/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import type { MemoryOperation } from "./MemoryOperation.ts"

export const write: MemoryOperation = (db, [lock, record], [owner, token, version, value, life]) => {
  if (db.hash(lock!)?.has(owner!) !== true) return 0
  const before = /^(\S+) \S+ (\S+) /.exec(db.getString(record!) ?? "")
  if (before !== null && before[1] === owner && Number(before[2]) > Number(version)) return 1
  db.setString(record!, `${owner} ${token} ${version} ${value}`, life === "0" ? undefined : Number(life))
  db.publish(record!, token!)
  return 1
}

export const read: MemoryOperation = (db, [lock, record]) => [
  String(db.timeMicros()),
  [...(db.hash(lock!)?.keys() ?? [])][0] ?? "",
  db.getString(record!) ?? null
]

export const clear: MemoryOperation = (db, [, record], [owner]) => {
  if (/^(\S+) /.exec(db.getString(record!) ?? "")?.[1] !== owner) return 0
  db.delete(record!)
  db.publish(record!, "0")
  return 1
}
