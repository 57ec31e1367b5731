/**
 * Redisson's permit-expirable semaphore: what is held are permits with ids. The owner is the ids, joined by commas.
 */
import { permitIds, semaphoreChannel } from "../store/keys.ts"
import type { LockProtocol } from "./LockProtocol.ts"

/** In messages. */
export const permitSemaphoreTitle = "PermitSemaphore"

/** The ids of an owner. */
export const idsOf = (owner: string): ReadonlyArray<string> => owner.split(",")

const never = (): never => {
  throw new Error("permits are not re-entered, nor taken from their holders")
}

/** The kind of a semaphore that begins with so many permits where it does not exist; undefined not to create it. */
export const permit = (initial: number | undefined): LockProtocol => ({
  name: "permit-semaphore",
  title: permitSemaphoreTitle,
  mode: "permit",
  reentrant: false,
  queued: false,
  hasTokens: false,
  together: false,
  backoff: undefined,
  channel: (keys) => semaphoreChannel(keys.lock),
  acquire: ({ client, keys, owner }, { leaseMillis }) => ({
    operation: "permit_semaphore/acquire",
    keys: [keys.lock, permitIds(keys.lock), semaphoreChannel(keys.lock)],
    args: [initial ?? "", leaseMillis, client.store.publish, ...idsOf(owner)]
  }),
  addHold: never,
  removeHold: never,
  release: ({ client, keys, owner }) => ({
    operation: "permit_semaphore/release",
    keys: [keys.lock, permitIds(keys.lock), semaphoreChannel(keys.lock)],
    args: [client.store.publish, ...idsOf(owner)]
  }),
  renew: (ownerRefs, leaseMillis) => ({
    operation: "permit_semaphore/renew",
    keys: ownerRefs.map(({ keys }) => permitIds(keys.lock)),
    args: [leaseMillis, ...ownerRefs.map(({ owner }) => owner)]
  }),
  forceRelease: never,
  cancelWriterIntent: undefined
})
