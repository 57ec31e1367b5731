/**
 * Redisson's fair lock: first come, first served, across all clients.
 */
import * as fairLock from "../store/operations/fairLock.ts"
import type { ProtocolClient } from "./ProtocolClient.ts"
import { type LockProtocol, tokenKey, tokenLife } from "./LockProtocol.ts"
import { reentrant } from "./exclusive.ts"

/** Redisson's fairLockWaitTimeout: each waiter adds it to the scores of those behind it, and subtracts it when served. */
export const waiterTimeoutMillis = 300_000

export const placeTermsOf = (
  { clientId, options, store }: ProtocolClient,
  timeoutMillis: number
): fairLock.PlaceTerms => ({
  waiterTimeoutMillis: timeoutMillis,
  clientId,
  placeLifeMillis: options.placeLifeMillis,
  publish: store.publish
})

export const fair: LockProtocol = {
  ...reentrant,
  name: "fair",
  title: "FairLock",
  queued: true,
  handsOver: false,
  together: false,
  channel: (keys, owner) => `${keys.channel}:${owner}`,
  acquire: ({ client, keys, kind, owner }, { leaseMillis, waits }) =>
    fairLock.acquire(
      keys,
      tokenKey(kind, keys),
      owner,
      { leaseMillis, tokenLifeMillis: tokenLife(client, leaseMillis) },
      placeTermsOf(client, waits ? waiterTimeoutMillis : 0)
    ),
  release: ({ client, keys, owner }) => fairLock.release(keys, owner, client.store.publish),
  forceRelease: fairLock.forceRelease
}

/**
 * A fair lock that its holder cannot acquire again.
 */
export const nonReentrantFair: LockProtocol = {
  ...fair,
  name: "non_reentrant_fair",
  title: "fair NonReentrantLock",
  reentrant: false
}
