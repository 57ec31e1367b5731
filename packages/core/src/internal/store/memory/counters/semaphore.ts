/**
 * The operations of `lua/semaphore/` on a {@link Keyspace}: same keys, same arguments, same replies.
 */
import { counter } from "./counter.ts"
import { type Keyspace, WrongType } from "../keyspace/Keyspace.ts"
import type { MemoryOperation } from "../MemoryOperation.ts"
import { keptBack, leave as leavePlace, takePlace, tell } from "./permitPlaces.ts"

/** The free permits of a semaphore whose permits are anonymous. */
const anonymous = (db: Keyspace, semaphore: string, ids: string): number | undefined => {
  if (db.exists(ids)) throw new WrongType("a permit semaphore")
  return counter(db, semaphore)
}

/** Creates a missing semaphore if its client says how many permits it begins with. */
const begin = (db: Keyspace, semaphore: string, ids: string, initial: string) => {
  const available = anonymous(db, semaphore, ids)
  if (available !== undefined || initial === "") return { available, created: false }
  db.setString(semaphore, initial)
  return { available: Number(initial), created: true }
}

export const acquire: MemoryOperation = (
  db,
  [semaphore, ids, marker, ...told],
  [initial, permits, life, , ...asks]
) => {
  const [client, ifDenied, ifGranted, who] = asks as [string, string, string, string]
  const asking = told.length > 1 ? { keys: told, client, ifDenied, ifGranted, who } : undefined
  const begun = begin(db, semaphore!, ids!, initial!)
  let { available } = begun
  const known = db.getString(marker!)
  let granted = known !== undefined
  const { kept, left } = keptBack(db, asking, available, Number(permits))
  if (known === undefined && available !== undefined && available - kept >= Number(permits)) {
    granted = true
    available = db.incrBy(semaphore!, -Number(permits))
    db.setString(marker!, permits!, Number(life))
  }
  takePlace(db, asking, granted)
  if (begun.created) tell(db, told, available!)
  return [granted ? 1 : 0, (available ?? 0) - (granted ? 0 : kept), available === undefined ? 0 : 1, left]
}

export const giveBack: MemoryOperation = (db, [semaphore, marker, ...told], [permits, trusted]) => {
  const available = counter(db, semaphore!)
  if (trusted === "0") {
    if (!db.delete(marker!)) return 0
  } else {
    const isReturned = db.getString(marker!) === "returned"
    db.setString(marker!, "returned", Number(trusted))
    if (isReturned) return 1
  }
  if (available === undefined) return 0
  tell(db, told, db.incrBy(semaphore!, Number(permits)))
  return 1
}

export const add: MemoryOperation = (db, [semaphore, ids, ...told], [initial, permits, ifExists]) => {
  const { available } = begin(db, semaphore!, ids!, initial!)
  if (available === undefined && ifExists === "1") return 0
  tell(db, told, db.incrBy(semaphore!, Number(permits)))
  return 1
}

export const set: MemoryOperation = (db, [semaphore, ids, ...told], [permits, life]) => {
  if (anonymous(db, semaphore!, ids!) !== undefined) return 0
  db.setString(semaphore!, permits!, life === "0" ? undefined : Number(life))
  tell(db, told, Number(permits))
  return 1
}

export const drain: MemoryOperation = (db, [semaphore, ids], [initial]) => {
  const { available } = begin(db, semaphore!, ids!, initial!)
  if (available === undefined) return 0
  db.incrBy(semaphore!, -available)
  return available
}

export const available: MemoryOperation = (db, [semaphore]) => counter(db, semaphore!) ?? null

export const leave: MemoryOperation = (db, [semaphore, ...told], [client]) =>
  leavePlace(db, told, client!, () => (db.type(semaphore!) === "string" ? Number(db.getString(semaphore!)) : undefined))
