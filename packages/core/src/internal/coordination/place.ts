import type { Fiber } from "effect/Fiber"
import type { LockClient } from "../client/LockClient.ts"
import type { LockImpl } from "../locks/LockImpl.ts"
import { type Invalid, isInvalid } from "../options/invalid.ts"
import type { LockKeys } from "../store/keys.ts"

/** The client of a lock, and the lock's keys, among them that of its record. */
export interface Place {
  readonly client: LockClient
  readonly keys: LockKeys
}

/** The place of a lock for a fiber; or the problem with its name or options. */
export const placeOf = (lock: LockImpl<any, any>, fiber: Fiber<unknown, unknown>): Place | Invalid => {
  if (lock.invalid !== null) return lock.invalid
  const client = lock.clientOf(fiber)
  const keys = lock.keys(client)
  return isInvalid(keys) ? keys : { client, keys }
}
