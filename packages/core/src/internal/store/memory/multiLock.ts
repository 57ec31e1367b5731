/**
 * The operations of `lua/multi_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { WrongType } from "./keyspace/Keyspace.ts"
import { nextToken, tokenBefore } from "./lock.ts"
import type { MemoryOperation } from "./MemoryOperation.ts"

export const acquire: MemoryOperation = (db, keys, args) => {
  const [owner, lease, tokenLife] = args as [string, string, string]
  const count = keys.length / 2
  const mine = new Set<number>()
  for (let i = 0; i < count; i++) {
    const fields = db.hash(keys[i]!)
    if (fields === undefined) continue
    if (!fields.has(owner)) {
      if (fields.has("mode")) throw new WrongType()
      return [0, i, db.pttl(keys[i]!), [...fields.keys()][0]!]
    }
    mine.add(i)
  }
  const now = db.timeMicros()
  const tokens: Array<number> = []
  for (let i = 0; i < count; i++) {
    const lock = keys[i]!
    const token = keys[count + i]!
    if (mine.has(i)) {
      tokens.push(tokenBefore(db, lock, token))
      continue
    }
    try {
      tokens.push(nextToken(db, lock, token, Number(tokenLife)))
    } catch (error) {
      // no token: the locks taken so far are given back
      for (let taken = 0; taken < i; taken++) db.hdel(keys[taken]!, owner)
      throw error
    }
    db.hset(lock, owner, "1")
    db.expire(lock, Number(lease))
  }
  return tokens.every((token) => token === now) ? now : [1, ...tokens]
}

export const release: MemoryOperation = (db, keys, [owner]) => {
  const replies: Array<number> = []
  for (let i = 0; i < keys.length; i += 2) {
    const lock = keys[i]!
    const isReleased = db.type(lock) === "hash" && db.hdel(lock, owner!)
    replies.push(isReleased ? 1 + db.publish(keys[i + 1]!, "0") : db.exists(lock) ? -1 : 0)
  }
  return replies.every((reply) => reply === 1) ? 1 : replies
}
