/**
 * The operation of `lua/grant/` on a {@link Keyspace}.
 */
import type { MemoryOperation } from "./MemoryOperation.ts"

/** Nothing replicates memory, so nothing is written again. */
export const confirm: MemoryOperation = (db, keys, marks) =>
  keys.map((key, i) => {
    const [kind, name] = [marks[i]![0], marks[i]!.slice(1)]
    const type = db.type(key)
    if (kind === "h") return type === "hash" && db.hash(key)!.has(name) ? 1 : 0
    if (kind === "z") return type === "zset" && db.zscore(key, name) !== undefined ? 1 : 0
    return type === "string" ? 1 : 0
  })
