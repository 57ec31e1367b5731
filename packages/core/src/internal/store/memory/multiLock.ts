/**
 * The operations of `lua/multi_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { WrongType } from "./Keyspace.ts"
import { nextToken } from "./lock.ts"
import type { MemoryOperation } from "./MemoryStore.ts"

export const acquire: MemoryOperation = (db, keys, args) => {
  const [owner, lease, tokenLife] = args as [string, string, string]
  // everything is read before anything is written: what is of a foreign type ends the operation
  for (let i = 0; i < keys.length; i += 2) {
    db.getString(keys[i + 1]!)
    const fields = db.hash(keys[i]!)
    if (fields === undefined || fields.has(owner)) continue
    if (fields.has("mode")) throw new WrongType()
    return [0, i / 2, db.pttl(keys[i]!), [...fields.keys()][0]!]
  }
  const tokens: Array<number> = []
  for (let i = 0; i < keys.length; i += 2) {
    const lock = keys[i]!
    const token = keys[i + 1]!
    if (db.exists(lock)) {
      tokens.push(Number(db.getString(token) ?? 0))
    } else {
      tokens.push(nextToken(db, token, Number(tokenLife)))
      db.hset(lock, owner, "1")
      db.expire(lock, Number(lease))
    }
  }
  return [1, ...tokens]
}

export const release: MemoryOperation = (db, keys, [owner]) => {
  const replies: Array<number> = []
  for (let i = 0; i < keys.length; i += 2) {
    const lock = keys[i]!
    const isReleased = db.type(lock) === "hash" && db.hdel(lock, owner!)
    replies.push(isReleased ? 1 + db.publish(keys[i + 1]!, "0") : db.exists(lock) ? -1 : 0)
  }
  return replies
}
