/**
 * The operations of `lua/read_lock/` and `lua/write_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { type Keyspace, WrongType } from "./Keyspace.ts"
import { granted, grantedBefore, lastToken, nextToken, raiseExpiry } from "./lock.ts"
import type { MemoryOperation } from "./MemoryStore.ts"

const holdKey = (stem: string, owner: string, number: number): string => `${stem}:${owner}:rwlock_timeout:${number}`

const isWriter = (field: string): boolean => field.endsWith(":write")

const ownerOf = (field: string): string => field.slice(0, -":write".length)

/** Every hold of every reader. */
const holds = (db: Keyspace, lock: string, stem: string): ReadonlyArray<string> =>
  [...(db.hash(lock) ?? [])].flatMap(([field, count]) =>
    field === "mode" ? [] : Array.from({ length: Number(count) }, (_, i) => holdKey(stem, field, i + 1))
  )

/** `lua/include/longest_read.lua` */
const longestRead = (db: Keyspace, lock: string, stem: string): number =>
  Math.max(0, ...holds(db, lock, stem).map((hold) => db.pttl(hold)))

export const acquireRead: MemoryOperation = (db, keys, args) => {
  const [lock, token, firstHold, writers] = keys as [string, string, string, string]
  const [owner, lease, writer, writerToken, yields] = args as [string, string, string, string, string]
  const fields = db.hash(lock)
  const mode = fields?.get("mode")
  const left = db.pttl(lock)
  if (fields !== undefined && mode === undefined) throw new WrongType()
  const mine = writer !== "" && fields?.has(`${writer}:write`) === true
  const isNew = fields?.has(owner) !== true
  if (isNew) {
    if (mode === "write" && !mine) return [left, ownerOf([...fields!.keys()].find(isWriter)!)]
    if (yields === "1" && !mine) {
      const last = db.zset(writers).at(-1)
      const wait = last === undefined ? 0 : last[1] - db.timeMillis()
      if (wait > 0) return [wait, last![0]]
    }
  }
  const reply = token === lock ? 0 : mine ? Number(writerToken) : (lastToken(db, token) ?? db.timeMicros() - 1)
  if (isNew) {
    if (mode === undefined) db.hset(lock, "mode", "read")
    db.hset(lock, owner, "1")
  }
  db.setString(firstHold, "1", Number(lease))
  if (left < Number(lease) && left !== -1) db.expire(lock, Number(lease))
  return reply
}

export const holdRead: MemoryOperation = (db, [lock, hold], [owner, count, lease]) => {
  const held = db.hash(lock!)?.get(owner!)
  if (held === undefined) return 0
  db.hset(lock!, owner!, String(Math.max(Number(held), Number(count))))
  if (db.pttl(hold!) < Number(lease)) db.setString(hold!, "1", Number(lease))
  raiseExpiry(db, lock!, Number(lease))
  return 1
}

export const releaseRead: MemoryOperation = (db, keys, args) => {
  const [lock, channel, stem] = keys as [string, string, string]
  const [owner, remainText, publish, number] = args as [string, string, string, string]
  const held = db.hash(lock)?.get(owner)
  if (held === undefined) return db.exists(lock) ? -1 : 0
  const remain = Number(remainText)
  if (remain < Number(held) && remain > 0 && Number(number) <= remain) {
    const left = db.pttl(holdKey(stem, owner, Number(held)))
    const ended = holdKey(stem, owner, Number(number))
    if (left > 0) db.setString(ended, "1", left)
    else db.delete(ended)
  }
  for (let i = remain + 1; i <= Number(held); i++) db.delete(holdKey(stem, owner, i))
  if (remain > 0) db.hset(lock, owner, remainText)
  else db.hdel(lock, owner)
  if (db.hash(lock)?.get("mode") === "write") return 1
  const longest = longestRead(db, lock, stem)
  if (longest > 0) {
    db.expire(lock, longest)
    return 1
  }
  db.delete(lock)
  return publish === "" ? 1 : 1 + db.publish(channel, "0")
}

export const renewRead: MemoryOperation = (db, keys, [lease, ...readers]) => {
  const replies: Array<number> = []
  let key = 0
  for (let i = 0; i < readers.length; i += 2) {
    const lock = keys[key]!
    const count = Number(readers[i + 1])
    const held = db.type(lock) === "hash" ? Number(db.hash(lock)!.get(readers[i]!) ?? 0) : 0
    const holds = keys.slice(key + 1, key + 1 + Math.min(count, held))
    const isHeld = holds.some((hold) => db.exists(hold))
    if (isHeld) {
      for (const hold of holds) if (db.pttl(hold) < Number(lease)) db.setString(hold, "1", Number(lease))
      raiseExpiry(db, lock, Number(lease))
    }
    replies.push(isHeld ? 1 : 0)
    key += 1 + count
  }
  return replies
}

const forceRelease =
  (mode: "read" | "write", message: string): MemoryOperation =>
  (db, [lock, channel, stem]) => {
    const present = db.hash(lock!)
    if (present !== undefined && !present.has("mode")) throw new WrongType()
    if (present?.get("mode") !== mode) return 0
    for (const hold of holds(db, lock!, stem!)) db.delete(hold)
    db.delete(lock!)
    db.publish(channel!, message)
    return 1
  }

export const forceReleaseRead = forceRelease("read", "0")

export const forceReleaseWrite = forceRelease("write", "1")

export const acquireWrite: MemoryOperation = (db, keys, args) => {
  const [lock, token, writers] = keys as [string, string, string]
  const [owner, lease, tokenLife, client, announced, atLeast] = args as [
    string,
    string,
    string,
    string,
    string,
    string?
  ]
  const fields = db.hash(lock)
  if (fields !== undefined) {
    if (!fields.has("mode")) throw new WrongType()
    if (fields.has(`${owner}:write`)) return grantedBefore(db, lock, token)
    if (announced !== "0" && fields.get("mode") === "read") {
      db.zadd(writers, db.timeMillis() + Number(announced), client)
      if (db.pttl(writers) < Number(announced)) db.expire(writers, Number(announced))
    }
    const others = [...fields.keys()].filter((field) => field !== "mode")
    const holder = others.find(isWriter)
    return [db.pttl(lock), holder === undefined ? (others.at(-1) ?? "") : ownerOf(holder)]
  }
  const next = nextToken(db, lock, token, Number(tokenLife), atLeast)
  db.hset(lock, "mode", "write")
  db.hset(lock, `${owner}:write`, "1")
  db.expire(lock, Number(lease))
  db.zrem(writers, client)
  return granted(db, next)
}

export const releaseWrite: MemoryOperation = (db, [lock, channel, stem], [owner, publish]) => {
  if (!db.hdel(lock!, `${owner}:write`)) return db.exists(lock!) ? -1 : 0
  const longest = longestRead(db, lock!, stem!)
  if (longest > 0) {
    db.hset(lock!, "mode", "read")
    db.expire(lock!, longest)
  } else {
    db.delete(lock!)
  }
  return publish === "" ? 1 : 1 + db.publish(channel!, "1")
}

export const withdraw: MemoryOperation = (db, [, channel, writers], [client]) => {
  if (!db.zrem(writers!, client!)) return 0
  if (!db.exists(writers!)) db.publish(channel!, "1")
  return 1
}
