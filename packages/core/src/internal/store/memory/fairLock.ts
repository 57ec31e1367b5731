/**
 * The operations of `lua/fair_lock/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { type Keyspace, WrongType } from "./keyspace/Keyspace.ts"
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

/** Redisson's fairLockWaitTimeout */
const turnMillis = 300_000

/** Without places no client is noted: taking a place notes it again. */
const forgetClients = (db: Keyspace, { clients, timeouts }: Queue): void => {
  db.delete(timeouts)
  db.delete(clients)
}

/** `lua/include/fair/skip_the_dead.lua` */
const skipTheDead = (db: Keyspace, keys: Queue) => {
  const { clients, queue, timeouts } = keys
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
  for (let passed = 0; head !== undefined && passed < 100 && !keepHead(db, keys, head, now); passed++) {
    db.lpop(queue)
    db.zrem(timeouts, head)
    head = db.list(queue)[0]
  }
  return { now, first, head }
}

const keepHead = (db: Keyspace, { clients, timeouts }: Queue, owner: string, now: number): boolean => {
  const due = db.zscore(timeouts, owner)
  const alive = db.zscore(clients, clientOf(owner))
  const ends = alive ?? due
  if (ends !== undefined && ends <= now) return false
  if (due === undefined || (alive !== undefined && due < now + turnMillis / 2)) {
    db.zadd(timeouts, now + turnMillis, owner)
  }
  return true
}

/** `lua/include/fair/keep_front.lua` */
const keepFront = (
  db: Keyspace,
  lock: string,
  { clients, queue, timeouts }: Queue,
  now: number,
  served: number
): void => {
  const free = now + Math.max(0, db.pttl(lock))
  for (const [i, owner] of db.list(queue).slice(0, 8).entries()) {
    const due = db.zscore(timeouts, owner)
    const alive = db.zscore(clients, clientOf(owner))
    const score = Math.min((due ?? Number.POSITIVE_INFINITY) - served, free + turnMillis * (i + 1))
    const isLow = alive !== undefined && alive > now && score < now + (turnMillis / 2) * (i + 1)
    const next = isLow ? now + turnMillis * (i + 1) : score
    if (due === undefined || Math.abs(next - due) > 10) db.zadd(timeouts, next, owner)
  }
}

/** `lua/include/fair/leave_queue.lua` */
const leaveQueue = (db: Keyspace, { queue, timeouts }: Queue, owner: string): boolean => {
  if (!db.zrem(timeouts, owner)) return false
  db.lrem(queue, owner)
  return true
}

/** `lua/include/fair/queue_up.lua` */
const queueUp = (
  db: Keyspace,
  lock: string,
  { queue, timeouts }: Queue,
  owner: string,
  { now, waiterTimeout }: { readonly now: number; readonly waiterTimeout: number }
): void => {
  if (db.zscore(timeouts, owner) !== undefined) return
  const free = now + Math.max(0, db.pttl(lock))
  db.rpush(queue, owner)
  db.zadd(timeouts, free + waiterTimeout * db.list(queue).length, owner)
}

export const acquire: MemoryOperation = (db, keys, args) => {
  const [lock, token, , , , channel] = keys as [string, string, string, string, string, string]
  const [owner, lease, tokenLife, waiterTimeoutText, client, life] = args as [
    string,
    string,
    string,
    string,
    string,
    string
  ]
  const queue = queueOf(keys)
  const waiterTimeout = Number(waiterTimeoutText)
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
    }
    db.hset(lock, owner, "1")
    db.expire(lock, Number(lease))
    if (db.exists(queue.queue)) keepFront(db, lock, queue, now, waiterTimeout)
    else forgetClients(db, queue)
    return granted(db, next)
  } else if (head !== first) {
    db.publish(`${channel}:${head}`, "0")
  }
  if (waiterTimeout > 0) {
    queueUp(db, lock, queue, owner, { now, waiterTimeout })
    db.zadd(queue.clients, now + Number(life), client)
    db.zadd(queue.clients, now, "seen")
    db.expire(queue.clients, remember)
  }
  return [db.pttl(lock), holder!]
}

export const refresh: MemoryOperation = (db, keys, args) => {
  const [lock, channel] = keys as [string, string]
  const [, waiterTimeoutText, client, life, fromFirst, waits] = args as ReadonlyArray<string> as [
    string,
    string,
    string,
    string,
    string,
    string
  ]
  const waiterTimeout = Number(waiterTimeoutText)
  const waiting = args.slice(6, 6 + Number(waits))
  const queue = queueOf(keys)
  const before = db.list(queue.queue)[0]
  const noted = db.zscore(queue.clients, client)
  const millis = db.timeMillis()
  if (life !== "0") {
    db.zadd(queue.clients, millis + Number(life), client)
    if (db.zscore(queue.clients, "seen") === undefined) db.zadd(queue.clients, millis, "seen")
  } else {
    db.zadd(queue.clients, 0, client)
  }
  db.expire(queue.clients, remember)
  for (const owner of args.slice(6 + Number(waits))) leaveQueue(db, queue, owner)
  const { now } = skipTheDead(db, queue)
  const holder = db.hash(lock)?.keys().next().value
  const lost = noted !== undefined && noted > millis + 100 ? 0 : 1
  for (const owner of lost === 0 || fromFirst === "1" ? waiting : []) {
    if (owner !== holder) queueUp(db, lock, queue, owner, { now, waiterTimeout })
  }
  keepFront(db, lock, queue, now, 0)
  const head = db.list(queue.queue)[0]
  if (head === undefined) forgetClients(db, queue)
  const left = db.pttl(lock)
  if (head === undefined) return [left, null, 0, holder ?? null, lost]
  if (left === -2 && head !== before) db.publish(`${channel}:${head}`, "0")
  const ends = db.zscore(queue.clients, clientOf(head)) ?? db.zscore(queue.timeouts, head)!
  return [left, head, Math.max(0, Math.floor(ends - now)), holder ?? null, lost]
}

export const release: MemoryOperation = (db, keys, args) => {
  const [lock, channel] = keys as [string, string]
  const [owner] = args as [string]
  const queue = queueOf(keys)
  const released = db.hdel(lock, owner)
  const left = leaveQueue(db, queue, owner)
  const { head, now } = skipTheDead(db, queue)
  if (left && head !== undefined) keepFront(db, lock, queue, now, 0)
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
