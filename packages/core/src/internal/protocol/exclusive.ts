/**
 * The kinds that share Redisson's hash of one owner, and exclude each other under one name.
 */
import type * as Schedule from "effect/Schedule"
import * as lock from "../store/operations/lock.ts"
import {
  type AcquireParams,
  type LockProtocol,
  type OwnerRef,
  takesPlaces,
  tokenKey,
  tokenLife
} from "./LockProtocol.ts"

/** How long a lock is kept for an owner that it was handed over to, until it asks, in milliseconds: short, as its process may be stopped. */
export const handOverLeaseMillis = 2000

const placeOf = (ownerRef: OwnerRef, { hasAsked, waits }: AcquireParams): lock.TakesPlace | undefined =>
  waits && takesPlaces(ownerRef) ? { hasAsked, spins: ownerRef.kind.backoff !== undefined } : undefined

/**
 * Redisson's RLock: reentrant, unfair.
 */
export const reentrant: LockProtocol = {
  name: "reentrant",
  title: "Lock",
  mode: "exclusive",
  reentrant: true,
  queued: false,
  handsOver: true,
  hasTokens: true,
  together: true,
  backoff: undefined,
  channel: (keys) => keys.channel,
  acquire: (ownerRef, params) => {
    const { client, keys, kind, owner } = ownerRef
    const { leaseMillis } = params
    const tokenLifeMillis = tokenLife(client, leaseMillis)
    return lock.acquire(keys, tokenKey(kind, keys), owner, { leaseMillis, tokenLifeMillis }, placeOf(ownerRef, params))
  },
  addHold: ({ keys, owner }, count, leaseMillis) => lock.hold(keys, owner, count, leaseMillis),
  removeHold: ({ keys, owner }, count) => lock.hold(keys, owner, count, 0),
  release: (ownerRef, publish) => {
    const { keys, owner } = ownerRef
    const terms = takesPlaces(ownerRef) ? { leaseMillis: handOverLeaseMillis } : undefined
    return lock.release(keys, owner, publish, terms)
  },
  renew: (ownerRefs, leaseMillis) =>
    lock.renew(
      ownerRefs.map(({ keys }) => keys.lock),
      ownerRefs.map(({ owner }) => owner),
      leaseMillis
    ),
  forceRelease: lock.forceRelease,
  cancelWriterIntent: undefined
}

/**
 * Redisson's RFencedLock: its tokens are a counter.
 */
export const fenced: LockProtocol = {
  ...reentrant,
  name: "fenced",
  title: "FencedLock",
  together: false,
  acquire: (ownerRef, params) =>
    lock.acquireFenced(ownerRef.keys, ownerRef.owner, params.leaseMillis, placeOf(ownerRef, params))
}

/**
 * Redisson's spin lock: retries after a pause. Once a second a release reserves the lock for the client that has spun longest.
 */
export const spin = (backoff: Schedule.Schedule<unknown>): LockProtocol => ({
  ...reentrant,
  name: "spin",
  title: "SpinLock",
  backoff
})

/**
 * A lock that its holder cannot acquire again.
 */
export const nonReentrant: LockProtocol = {
  ...reentrant,
  name: "non_reentrant",
  title: "NonReentrantLock",
  reentrant: false
}
