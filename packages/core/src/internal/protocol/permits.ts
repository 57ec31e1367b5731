/**
 * Redisson's permit-expirable semaphore: its holds are permits with ids. The owner is the ids, joined by commas.
 */
import { semaphoreChannel } from "../store/keys.ts"
import * as permitSemaphore from "../store/operations/counters/permitSemaphore.ts"
import type { LockProtocol } from "./LockProtocol.ts"

/** Name used in messages. */
export const permitSemaphoreTitle = "PermitSemaphore"

export const idsOf = (owner: string): ReadonlyArray<string> => owner.split(",")

export interface PermitProtocol extends LockProtocol {
  /** The permits with which a missing semaphore is created; undefined not to create it. */
  readonly initial: number | undefined
}

const never = (): never => {
  throw new Error("permits are neither acquired like locks, nor re-entered, nor force-released")
}

export const permit = (initial: number | undefined): PermitProtocol => ({
  initial,
  name: "permit_semaphore",
  title: permitSemaphoreTitle,
  mode: "permit",
  reentrant: false,
  queued: false,
  handsOver: false,
  hasTokens: false,
  together: false,
  backoff: undefined,
  channel: (keys) => semaphoreChannel(keys.lock),
  // never acquired like a lock: permits have a reply of their own
  acquire: never,
  addHold: never,
  removeHold: never,
  release: ({ client, keys, owner }) => permitSemaphore.release(keys.lock, idsOf(owner), client.store),
  renew: (ownerRefs, leaseMillis) =>
    permitSemaphore.renew(
      ownerRefs.map(({ keys }) => keys.lock),
      ownerRefs.map(({ owner }) => owner),
      leaseMillis
    ),
  forceRelease: never,
  cancelWriterIntent: undefined
})
