/**
 * The kinds that share Redisson's hash of one owner, and exclude each other under one name.
 */
import type * as Schedule from "effect/Schedule"
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
  acquire: ({ client, keys, kind, owner }, { leaseMillis }) => ({
    operation: "lock/acquire",
    keys: [keys.lock, tokenKey(kind, keys)],
    args: [owner, leaseMillis, tokenLife(client, leaseMillis), ""]
  }),
  addHold: ({ keys, owner }, count, leaseMillis) => ({
    operation: "lock/hold",
    keys: [keys.lock],
    args: [owner, count, leaseMillis]
  }),
  removeHold: ({ keys, owner }, count) => ({ operation: "lock/hold", keys: [keys.lock], args: [owner, count, 0] }),
  release: ({ keys, owner }, publish) => ({
    operation: "lock/release",
    keys: [keys.lock, keys.channel],
    args: [owner, publish]
  }),
  renew: (ownerRefs, leaseMillis) => ({
    operation: "lock/renew",
    keys: ownerRefs.map(({ keys }) => keys.lock),
    args: [leaseMillis, ...ownerRefs.map(({ owner }) => owner)]
  }),
  forceRelease: (keys, publish) => ({
    operation: "lock/force_release",
    keys: [keys.lock, keys.channel],
    args: [publish]
  }),
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
  acquire: ({ keys, owner }, { leaseMillis }) => ({
    operation: "fenced_lock/acquire",
    keys: [keys.lock, keys.token],
    args: [owner, leaseMillis]
  })
}

/**
 * Redisson's spin lock: asks again after a pause.
 */
export const spin = (backoff: Schedule.Schedule<unknown>): LockProtocol => ({
  ...reentrant,
  name: "spin",
  title: "SpinLock",
  backoff
})

/**
 * A lock that its holder cannot take again.
 */
export const nonReentrant: LockProtocol = {
  ...reentrant,
  name: "nonReentrant",
  title: "NonReentrantLock",
  reentrant: false
}
