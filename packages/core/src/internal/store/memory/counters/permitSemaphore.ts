/**
 * The operations of `lua/permit_semaphore/` on a {@link Keyspace}: same keys, same arguments, same replies. Only the ids
 * are stored as text, not as bytes.
 */
import { counter } from "./counter.ts"
import type { Keyspace } from "../keyspace/Keyspace.ts"
import type { MemoryOperation } from "../MemoryOperation.ts"
import { keptBack, takePlace, tell } from "./permitPlaces.ts"

/** Redisson's score of a permit that never expires. */
export const never = 922_337_203_685_477

/** `lua/include/permits/reap.lua` */
const reap = (db: Keyspace, semaphore: string, ids: string) => {
  const available = counter(db, semaphore)
  const now = db.timeMillis()
  const all = db.zset(ids).filter(([, expiry]) => expiry <= now)
  const reaped = Math.min(all.length, 1000)
  for (const [id] of all.slice(0, reaped)) db.zrem(ids, id)
  return {
    ended: all.length - reaped,
    available: available !== undefined && reaped > 0 ? db.incrBy(semaphore, reaped) : available,
    now,
    reaped
  }
}

/** Creates a missing semaphore if its client says how many permits it begins with. */
const begin = (db: Keyspace, semaphore: string, ids: string, initial: string) => {
  const reaped = reap(db, semaphore, ids)
  if (reaped.available !== undefined || initial === "") return { ...reaped, created: false }
  const available = Number(initial) - db.zset(ids).length
  db.setString(semaphore, String(available))
  return { ...reaped, available, created: true }
}

const isHeld = (db: Keyspace, ids: string, id: string): boolean => (db.zscore(ids, id) ?? 0) > db.timeMillis()

export const acquire: MemoryOperation = (db, [semaphore, ids, ...told], [initial, lease, , ...rest]) => {
  const [client, ifDenied, ifGranted, who] = rest as [string, string, string, string]
  const asking = told.length > 1 ? { keys: told, client, ifDenied, ifGranted, who } : undefined
  const wanted = asking === undefined ? rest : rest.slice(4)
  const { created, ended, now, reaped, ...begun } = begin(db, semaphore!, ids!, initial!)
  let { available } = begun
  const expiry = db.zscore(ids!, wanted[0]!)
  const sent = expiry !== undefined && expiry > now
  const { kept, left } = keptBack(db, asking, available, wanted.length)
  const granted = sent || (expiry === undefined && available !== undefined && available - kept >= wanted.length)
  if (granted && !sent) {
    available = db.incrBy(semaphore!, -wanted.length)
    for (const id of wanted) db.zadd(ids!, now + Number(lease), id)
    const life = db.pttl(semaphore!)
    if (life > 0) db.expire(ids!, life)
  }
  takePlace(db, asking, granted)
  if ((created || reaped > 0) && available !== undefined) tell(db, told, available)
  if (granted) return [1, available ?? 0, -1]
  const next = db.zset(ids!)[0]?.[1] ?? never
  const held = available === undefined ? -1 : db.zset(ids!).length - ended + kept
  const remaining = left >= 0 ? left : next < never ? Math.max(0, next - now) : -1
  return [0, (available ?? 0) - kept, remaining, held]
}

export const release: MemoryOperation = (db, [semaphore, ids, ...told], [, ...wanted]) => {
  const available = counter(db, semaphore!)
  const removed = wanted.filter((id) => db.zrem(ids!, id)).length
  let listeners = 0
  if (available !== undefined && removed > 0) {
    listeners = tell(db, told, db.incrBy(semaphore!, removed))
  }
  return removed < wanted.length ? -1 : 1 + listeners
}

export const tryRelease: MemoryOperation = (db, [semaphore, ids, ...told], [, ...wanted]) => {
  const { available, reaped } = reap(db, semaphore!, ids!)
  let removed = 0
  if (wanted.every((id) => isHeld(db, ids!, id))) {
    for (const id of wanted) removed += db.zrem(ids!, id) ? 1 : 0
  }
  if (reaped + removed > 0 && available !== undefined) {
    tell(db, told, removed > 0 ? db.incrBy(semaphore!, removed) : available)
  }
  return removed
}

const extend = (db: Keyspace, ids: string, lease: number, wanted: ReadonlyArray<string>): number => {
  if (!wanted.every((id) => isHeld(db, ids, id))) return 0
  const expiry = db.timeMillis() + lease
  for (const id of wanted) db.zadd(ids, Math.max(expiry, db.zscore(ids, id)!), id)
  return 1
}

export const renew: MemoryOperation = (db, keys, [lease, ...holders]) =>
  keys.map((ids, i) => {
    try {
      return extend(db, ids, Number(lease), holders[i]!.split(","))
    } catch {
      return 0
    }
  })

export const count: MemoryOperation = (db, [semaphore, ids, ...told]) => {
  const { available, ended, reaped } = reap(db, semaphore!, ids!)
  if (reaped > 0 && available !== undefined) tell(db, told, available)
  return [available === undefined ? null : available + ended, db.zset(ids!).length - ended]
}

export const set: MemoryOperation = (db, [semaphore, ids, ...told], [permits, ifExists]) => {
  const available = counter(db, semaphore!)
  if (available !== undefined && ifExists !== "1") return 0
  const change = Number(permits) - (available ?? 0) - db.zset(ids!).length
  if (available !== undefined && change === 0) return 0
  tell(db, told, db.incrBy(semaphore!, change))
  return 1
}

export const add: MemoryOperation = (db, [semaphore, ids, ...told], [initial, permits]) => {
  begin(db, semaphore!, ids!, initial!)
  const available = db.incrBy(semaphore!, Number(permits))
  tell(db, told, available)
  return available
}

export const lease: MemoryOperation = (db, [ids], [id]) => {
  const expiry = db.zscore(ids!, id!)
  if (expiry === undefined) return -2
  if (expiry >= never) return -1
  const left = expiry - db.timeMillis()
  return left > 0 ? left : -2
}

export const updateLease: MemoryOperation = (db, [ids], [id, lease]) => {
  if (!isHeld(db, ids!, id!)) return 0
  db.zadd(ids!, lease === "-1" ? never : db.timeMillis() + Number(lease), id!)
  return 1
}
