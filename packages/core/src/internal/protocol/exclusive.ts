/**
 * The kinds that share Redisson's hash of one owner, and exclude each other under one name.
 */
import type * as Schedule from "effect/Schedule"
import * as lock from "../store/operations/lock.ts"
import { type LockProtocol, tokenKey, tokenLife } from "./LockProtocol.ts"

/**
 * Redisson's RLock: reentrant, unfair.
 */
export const reentrant: LockProtocol = {
  name: "reentrant",
  title: "Lock",
  mode: "exclusive",
  reentrant: true,
  queued: false,
  hasTokens: true,
  together: true,
  backoff: undefined,
  channel: (keys) => keys.channel,
  acquire: ({ client, keys, kind, owner }, { leaseMillis }) =>
    lock.acquire(keys, tokenKey(kind, keys), owner, leaseMillis, tokenLife(client, leaseMillis)),
  addHold: ({ keys, owner }, count, leaseMillis) => lock.hold(keys, owner, count, leaseMillis),
  removeHold: ({ keys, owner }, count) => lock.hold(keys, owner, count, 0),
  release: ({ keys, owner }, publish) => lock.release(keys, owner, publish),
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
  acquire: ({ keys, owner }, { leaseMillis }) => lock.acquireFenced(keys, owner, leaseMillis)
}

/**
 * Redisson's spin lock: retries after a pause.
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
