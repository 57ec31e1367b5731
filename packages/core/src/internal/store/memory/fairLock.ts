/**
 * The operations of `lua/fair_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { type Keyspace, WrongType } from "./Keyspace.ts"
import { granted, grantedBefore, nextToken, refuseReadWrite } from "./lock.ts"
import type { MemoryOperation } from "./MemoryOperation.ts"

interface Queue {
  readonly queue: string
  readonly timeouts: string
  readonly clients: string
}

const queueOf = (keys: ReadonlyArray<string>): Queue => ({ queue: keys[2]!, timeouts: keys[3]!, clients: keys[4]! })

const clientOf = (owner: string): string => owner.slice(0, 36)

const remember = 86_400_000

/** Without places nobody is noted: whoever gets one is noted then. */
const forgetClients = (db: Keyspace, { clients, timeouts }: Queue): void => {
  db.delete(timeouts)
  db.delete(clients)
}

const shift = (db: Keyspace, timeouts: string, member: string, by: number): void =>
  db.zadd(timeouts, (db.zscore(timeouts, member) ?? 0) + by, member)

/** `lua/include/skip_the_dead.lua` */
const skipTheDead = (db: Keyspace, { clients, queue, timeouts }: Queue) => {
  const now = db.timeMillis()
  const first = db.list(queue)[0]
  let head = first
  const seen = head === undefined ? undefined : db.zscore(clients, "seen")
  if (seen !== undefined) {
    const still = now - seen
    if (still > 600) {
      for (const [client, alive] of db.zset(clients)) {
        if (client === "seen" || alive <= seen || alive >= now + 1000) continue
        const hasHadTime = alive % 1 !== 0
        db.zadd(clients, hasHadTime ? alive + Math.max(still - 1000, 0) : now + Math.min(3 * still, 5000) + 0.5, client)
      }
    }
    db.zadd(clients, now, "seen")
  }
  while (head !== undefined) {
    const due = db.zscore(timeouts, head)
    if (due === undefined) {
      db.zadd(timeouts, now + 300_000, head)
      break
    }
    if (due > now && (db.zscore(clients, clientOf(head)) ?? Number.POSITIVE_INFINITY) > now) break
    db.lpop(queue)
    db.zrem(timeouts, head)
    head = db.list(queue)[0]
  }
  return { now, first, head }
}

/** `lua/include/queue_up.lua` */
const queueUp = (
  db: Keyspace,
  lock: string,
  { queue, timeouts }: Queue,
  owner: string,
  { now, patience }: { readonly now: number; readonly patience: number }
): void => {
  if (db.zscore(timeouts, owner) !== undefined) return
  const last = db.list(queue).at(-1)
  const score = last === undefined ? undefined : db.zscore(timeouts, last)
  const base = score === undefined ? now + Math.max(0, db.pttl(lock)) : Math.max(score, now)
  db.zadd(timeouts, base + patience, owner)
  db.rpush(queue, owner)
}

export const acquire: MemoryOperation = (db, keys, args) => {
  const [lock, token, , , , channel] = keys as [string, string, string, string, string, string]
  const [owner, lease, tokenLife, patienceText, client, life] = args as [string, string, string, string, string, string]
  const queue = queueOf(keys)
  const patience = Number(patienceText)
  const { first, head, now } = skipTheDead(db, queue)
  if (first !== undefined && head === undefined) forgetClients(db, queue)
  let holder = head
  const fields = db.hash(lock)
  if (fields !== undefined) {
    if (fields.has(owner)) {
      const left = db.pttl(lock)
      if (left >= 0 && left < Number(lease)) db.expire(lock, Number(lease))
      return grantedBefore(db, lock, token)
    }
    if (fields.has("mode")) throw new WrongType()
    holder = [...fields.keys()][0]!
  } else if (head === undefined || head === owner) {
    const next = nextToken(db, lock, token, Number(tokenLife))
    if (head !== undefined) {
      db.lpop(queue.queue)
      db.zrem(queue.timeouts, head)
      for (const [waiter] of db.zset(queue.timeouts)) shift(db, queue.timeouts, waiter, -patience)
    }
    if (!db.exists(queue.queue)) forgetClients(db, queue)
    db.hset(lock, owner, "1")
    db.expire(lock, Number(lease))
    return granted(db, next)
  } else if (head !== first) {
    db.publish(`${channel}:${head}`, "0")
  }
  if (patience > 0) {
    queueUp(db, lock, queue, owner, { now, patience })
    db.zadd(queue.clients, now + Number(life), client)
    db.zadd(queue.clients, now, "seen")
    db.expire(queue.clients, remember)
  }
  return [db.pttl(lock), holder!]
}

export const refresh: MemoryOperation = (db, keys, args) => {
  const [lock, channel] = keys as [string, string]
  const [, patienceText, client, life, elapsed, lastOwner, sweeps, waits] = args as ReadonlyArray<string> as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string
  ]
  const patience = Number(patienceText)
  const waiting = args.slice(8, 8 + Number(waits))
  const own = new Set(args.slice(8))
  const queue = queueOf(keys)
  if (own.size > 0) {
    const millis = db.timeMillis()
    db.zadd(queue.clients, millis + Number(life), client)
    if (db.zscore(queue.clients, "seen") === undefined) db.zadd(queue.clients, millis, "seen")
    db.expire(queue.clients, remember)
  }
  const { first, now, ...alive } = skipTheDead(db, queue)
  let head = alive.head
  const isLeft = (owner: string) =>
    clientOf(owner) === client && !own.has(owner) && Number(owner.slice(37)) <= Number(lastOwner)
  while (head !== undefined && isLeft(head)) {
    db.lpop(queue.queue)
    db.zrem(queue.timeouts, head)
    head = db.list(queue.queue)[0]
  }
  if (sweeps === "1") {
    const all = [...db.list(queue.queue)]
    let removed = 0
    db.delete(queue.queue)
    for (const owner of all) {
      if (isLeft(owner)) {
        removed++
        db.zrem(queue.timeouts, owner)
      } else {
        db.rpush(queue.queue, owner)
        if (db.zscore(queue.timeouts, owner) !== undefined) shift(db, queue.timeouts, owner, -patience * removed)
      }
    }
  }
  const holder = db.hash(lock)?.keys().next().value
  for (const owner of waiting) {
    if (owner === holder) continue
    if (db.zscore(queue.timeouts, owner) === undefined) queueUp(db, lock, queue, owner, { now, patience })
    else shift(db, queue.timeouts, owner, Number(elapsed))
  }
  head = db.list(queue.queue)[0]
  if (head === undefined) forgetClients(db, queue)
  else if (own.size === 0) db.zrem(queue.clients, client)
  if (holder !== undefined && waiting.includes(holder)) return [-2, holder, 0]
  const left = db.pttl(lock)
  if (head === undefined) return [left, null, 0]
  if (left === -2 && head !== first) db.publish(`${channel}:${head}`, "0")
  const due = db.zscore(queue.timeouts, head)!
  return [left, head, Math.max(0, Math.floor(Math.min(due, db.zscore(queue.clients, clientOf(head)) ?? due) - now))]
}

export const release: MemoryOperation = (db, keys, args) => {
  const [lock, channel] = keys as [string, string]
  const [owner, , patience] = args as [string, string, string]
  const queue = queueOf(keys)
  const released = db.hdel(lock, owner)
  if (db.zrem(queue.timeouts, owner)) {
    const waiters = db.list(queue.queue)
    const place = waiters.indexOf(owner)
    if (place !== -1) {
      for (const waiter of waiters.slice(place + 1)) shift(db, queue.timeouts, waiter, -Number(patience))
      db.lrem(queue.queue, owner)
    }
  }
  const { head } = skipTheDead(db, queue)
  if (head === undefined) forgetClients(db, queue)
  if (db.exists(lock)) return released ? 1 : -1
  const listeners = head === undefined ? 0 : db.publish(`${channel}:${head}`, "0")
  return released ? 1 + listeners : 0
}

export const forceRelease: MemoryOperation = (db, keys) => {
  const [lock, channel] = keys as [string, string]
  refuseReadWrite(db, lock)
  const queue = queueOf(keys)
  const { head } = skipTheDead(db, queue)
  if (head === undefined) forgetClients(db, queue)
  if (!db.delete(lock)) return 0
  if (head !== undefined) db.publish(`${channel}:${head}`, "0")
  return 1
}
