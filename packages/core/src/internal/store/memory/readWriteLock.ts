/**
 * The operations of `lua/read_lock/` and `lua/write_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { type Keyspace, WrongType } from "./keyspace/Keyspace.ts"
import { granted, grantedBefore, lastToken, leftOfOthersTurn, nextToken, raiseExpiry } from "./lock.ts"
import type { MemoryOperation } from "./MemoryOperation.ts"
import { denied, tellWaiters } from "./readWriteHandOver.ts"

const holdKey = (stem: string, owner: string, number: number): string => `${stem}:${owner}:rwlock_timeout:${number}`

const isWriter = (field: string): boolean => field.endsWith(":write")

const ownerOf = (field: string): string => field.slice(0, -":write".length)

/** Every hold of every reader. */
const holds = (db: Keyspace, lock: string, stem: string): ReadonlyArray<string> =>
  [...(db.hash(lock) ?? [])].flatMap(([field, count]) =>
    field === "mode" ? [] : Array.from({ length: Number(count) }, (_, i) => holdKey(stem, field, i + 1))
  )

/** `lua/include/readers/longest_read.lua` */
const longestRead = (db: Keyspace, lock: string, stem: string, noted: string): number | undefined => {
  const count = (db.hash(lock)?.size ?? 0) - 1
  if (count <= 0) return 0
  const notes = db.zset(noted)
  if (notes.length === count) return Math.max(0, notes.at(-1)![1] - db.timeMillis())
  if (count > 100) return undefined
  return Math.max(0, ...holds(db, lock, stem).map((hold) => db.pttl(hold)))
}

/** `lua/include/readers/note_reader.lua` */
const noteReader = (db: Keyspace, noted: string, owner: string, lock: string, lease: number): void => {
  const until = db.zscore(noted, owner)
  if (until !== undefined) db.zadd(noted, Math.max(until, db.timeMillis() + lease), owner)
  db.expire(noted, Math.max(lease, db.pttl(lock)))
}

export const acquireRead: MemoryOperation = (db, keys, args) => {
  const [lock, token, firstHold, writers, noted, places] = keys as [string, string, string, string, string, string?]
  const [owner, lease, writer, writerToken, yields, hasAsked] = args as [
    string,
    string,
    string,
    string,
    string,
    string?
  ]
  const fields = db.hash(lock)
  const mode = fields?.get("mode")
  const left = db.pttl(lock)
  if (fields !== undefined && mode === undefined) throw new WrongType()
  const mine = writer !== "" && fields?.has(`${writer}:write`) === true
  const isNew = fields?.has(owner) !== true
  if (isNew) {
    if (mode === "write" && !mine) {
      return denied(db, places, owner, [left, ownerOf([...fields!.keys()].find(isWriter)!)])
    }
    const turn = mode === undefined ? leftOfOthersTurn(db, places) : undefined
    if (turn !== undefined) return denied(db, places, owner, [turn, ""])
    if (yields === "1" && !mine) {
      const last = db.zset(writers).at(-1)
      const wait = last === undefined ? 0 : last[1] - db.timeMillis()
      if (wait > 0) return denied(db, places, owner, [wait, last![0]])
    }
    if (places !== undefined && hasAsked === "1") db.zrem(places, owner)
  }
  const reply = token === lock ? 0 : mine ? Number(writerToken) : (lastToken(db, token) ?? db.timeMicros() - 1)
  if (isNew) {
    const reader = db.zset(noted).at(-1)?.[0]
    if (reader !== undefined && fields?.has(reader) !== true) db.delete(noted)
    if (mode === undefined) db.hset(lock, "mode", "read")
    db.hset(lock, owner, "1")
    db.zadd(noted, 0, owner)
  }
  db.setString(firstHold, "1", Number(lease))
  if (left < Number(lease) && left !== -1) db.expire(lock, Number(lease))
  noteReader(db, noted, owner, lock, Number(lease))
  return reply
}

export const holdRead: MemoryOperation = (db, [lock, hold, noted], [owner, count, lease]) => {
  const held = db.hash(lock!)?.get(owner!)
  if (held === undefined) return 0
  db.hset(lock!, owner!, String(Math.max(Number(held), Number(count))))
  if (db.pttl(hold!) < Number(lease)) db.setString(hold!, "1", Number(lease))
  raiseExpiry(db, lock!, Number(lease))
  noteReader(db, noted!, owner!, lock!, Number(lease))
  return 1
}

/** Whether an owner that does not hold the lock has given up its place, and is the one to tell that the lock is free. */
const mustTell = (db: Keyspace, lock: string, places: string | undefined, field: string, publish: string): boolean => {
  if (places === undefined) return false
  db.zrem(places, field)
  return publish !== "" && !db.exists(lock)
}

export const releaseRead: MemoryOperation = (db, keys, [owner, publish, lease]) => {
  const [lock, , stem, noted, places] = keys as [string, string, string, string, string?]
  const held = db.hash(lock)?.get(owner!)
  if (held === undefined) {
    if (mustTell(db, lock, places, owner!, publish!)) {
      tellWaiters(db, keys, "0", lease)
      return 0
    }
    return db.exists(lock) ? -1 : 0
  }
  for (let i = 1; i <= Number(held); i++) db.delete(holdKey(stem, owner!, i))
  db.hdel(lock, owner!)
  db.zrem(noted, owner!)
  return endRead(db, keys, publish!, lease)
}

export const removeReadHold: MemoryOperation = (db, keys, args) => {
  const [lock, , stem, noted] = keys as [string, string, string, string]
  const [owner, remainText, publish, number] = args as [string, string, string, string]
  const held = db.hash(lock)?.get(owner)
  if (held === undefined) return db.exists(lock) ? -1 : 0
  const remain = Math.min(Number(held), Number(remainText))
  if (remain < Number(held) && Number(number) <= remain) {
    const left = db.pttl(holdKey(stem, owner, Number(held)))
    const ended = holdKey(stem, owner, Number(number))
    if (left > 0) db.setString(ended, "1", left)
    else db.delete(ended)
  }
  for (let i = remain + 1; i <= Number(held); i++) db.delete(holdKey(stem, owner, i))
  db.hset(lock, owner, String(remain))
  const lefts = Array.from({ length: remain }, (_, i) => db.pttl(holdKey(stem, owner, i + 1)))
  if (db.zscore(noted, owner) !== undefined) db.zadd(noted, db.timeMillis() + Math.max(0, ...lefts), owner)
  return endRead(db, keys, publish)
}

/** `lua/include/readers/end_read.lua` */
const endRead = (db: Keyspace, keys: ReadonlyArray<string>, publish: string, handOverLease?: string): number => {
  const [lock, , stem, noted] = keys as [string, string, string, string]
  if (db.hash(lock)?.get("mode") === "write") return 1
  const longest = longestRead(db, lock, stem, noted)
  if (longest === undefined) return 1
  if (longest > 0) {
    db.expire(lock, longest)
    db.expire(noted, longest)
    return 1
  }
  db.delete(lock)
  db.delete(noted)
  return publish === "" ? 1 : 1 + tellWaiters(db, keys, "0", handOverLease)
}

export const renewRead: MemoryOperation = (db, keys, [lease, ...readers]) => {
  const replies: Array<number> = []
  let key = 0
  for (let i = 0; i < readers.length; i += 2) {
    const [lock, noted] = [keys[key]!, keys[key + 1]!]
    const count = Number(readers[i + 1])
    const held = db.type(lock) === "hash" ? Number(db.hash(lock)!.get(readers[i]!) ?? 0) : 0
    const holds = keys.slice(key + 2, key + 2 + Math.min(count, held))
    const isHeld = holds.some((hold) => db.exists(hold))
    if (isHeld) {
      for (const hold of holds) if (db.pttl(hold) < Number(lease)) db.setString(hold, "1", Number(lease))
      raiseExpiry(db, lock, Number(lease))
      noteReader(db, noted, readers[i]!, lock, Number(lease))
    }
    replies.push(isHeld ? 1 : 0)
    key += 2 + count
  }
  return replies
}

const forceRelease =
  (mode: "read" | "write", message: string): MemoryOperation =>
  (db, [lock, channel, stem, noted]) => {
    const present = db.hash(lock!)
    if (present !== undefined && !present.has("mode")) throw new WrongType()
    if (present?.get("mode") !== mode) return 0
    if (present.size <= 1000) for (const hold of holds(db, lock!, stem!)) db.delete(hold)
    db.delete(lock!)
    db.delete(noted!)
    db.publish(channel!, message)
    return 1
  }

export const forceReleaseRead = forceRelease("read", "0")

export const forceReleaseWrite = forceRelease("write", "1")

export const acquireWrite: MemoryOperation = (db, keys, args) => {
  const [lock, token, writers, noted, places] = keys as [string, string, string, string, string?]
  const [owner, lease, tokenLife, client, announced, atLeast, asked] = args as [
    string,
    string,
    string,
    string,
    string,
    string,
    string?
  ]
  const field = `${owner}:write`
  const hasAsked = places !== undefined && asked === "1"
  const fields = db.hash(lock)
  if (fields?.has("mode") === false) throw new WrongType()
  const isHeld = fields?.has(field) === true
  if (isHeld && !hasAsked) return grantedBefore(db, lock, token)
  if (fields !== undefined && !isHeld) {
    if (announced !== "0" && fields.get("mode") === "read") {
      db.zadd(writers, db.timeMillis() + Number(announced), client)
      if (db.pttl(writers) < Number(announced)) db.expire(writers, Number(announced))
    }
    const reader = fields.get("mode") === "read" ? db.zset(noted).at(-1)?.[0] : undefined
    if (reader !== undefined && fields.has(reader)) return denied(db, places, field, [db.pttl(lock), reader])
    const others = [...fields.keys()].filter((other) => other !== "mode")
    const holder = others.find(isWriter)
    return denied(db, places, field, [db.pttl(lock), holder === undefined ? (others.at(-1) ?? "") : ownerOf(holder)])
  }
  const turn = fields === undefined ? leftOfOthersTurn(db, places) : undefined
  if (turn !== undefined) return denied(db, places, field, [turn, ""])
  if (fields === undefined && hasAsked) db.zrem(places, field)
  const next = nextToken(db, lock, token, Number(tokenLife), atLeast)
  db.hset(lock, "mode", "write")
  db.hset(lock, field, "1")
  db.expire(lock, Number(lease))
  db.zrem(writers, client)
  return granted(db, next, atLeast)
}

export const releaseWrite: MemoryOperation = (db, keys, [owner, publish, lease]) => {
  const [lock, , stem, noted, places] = keys as [string, string, string, string, string?]
  const field = `${owner}:write`
  if (!db.hdel(lock, field)) {
    if (!mustTell(db, lock, places, field, publish!)) return db.exists(lock) ? -1 : 0
    tellWaiters(db, keys, "1", lease)
    return 0
  }
  const longest = longestRead(db, lock, stem, noted)
  if (longest === 0) {
    db.delete(lock)
    db.delete(noted)
  } else {
    db.hset(lock, "mode", "read")
    if (longest !== undefined) {
      db.expire(lock, longest)
      db.expire(noted, longest)
    }
  }
  return publish === "" ? 1 : 1 + tellWaiters(db, keys, "1", lease)
}

export const withdraw: MemoryOperation = (db, [, channel, writers], [client]) => {
  if (!db.zrem(writers!, client!)) return 0
  // clients that have died withdraw nothing
  if (!db.zset(writers!).some(([, until]) => until > db.timeMillis())) db.publish(channel!, "1")
  return 1
}
