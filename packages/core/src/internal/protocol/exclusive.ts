/**
 * The kinds that share Redisson's hash of one owner, and exclude each other under one name.
 */
import type * as Schedule from "effect/Schedule"
import * as lock from "../store/operations/lock.ts"
import { handOverTerms, type LockProtocol, placeOf, tokenKey, tokenLife } from "./LockProtocol.ts"

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
  release: (ownerRef, publish) => lock.release(ownerRef.keys, ownerRef.owner, publish, handOverTerms(ownerRef)),
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
