/**
 * Redisson's fair lock: first come, first served, across all clients.
 */
import { type LockProtocol, tokenKey, tokenLife } from "./LockProtocol.ts"
import { reentrant } from "./exclusive.ts"

/** Redisson's fairLockWaitTimeout: what each waiter adds to the scores of those behind it, and takes off when served. */
export const waiterTimeoutMillis = 300_000

export const fair: LockProtocol = {
  ...reentrant,
  name: "fair",
  title: "FairLock",
  queued: true,
  together: false,
  channel: (keys, owner) => `${keys.channel}:${owner}`,
  acquire: ({ client, keys, kind, owner }, { leaseMillis, waits }) => ({
    operation: "fair_lock/acquire",
    keys: [keys.lock, tokenKey(kind, keys), keys.queue, keys.timeouts, keys.clients, keys.channel],
    args: [
      owner,
      leaseMillis,
      tokenLife(client, leaseMillis),
      waits ? waiterTimeoutMillis : 0,
      client.clientId,
      client.options.placeLifeMillis,
      client.store.publish
    ]
  }),
  release: ({ client, keys, owner }) => ({
    operation: "fair_lock/release",
    keys: [keys.lock, keys.channel, keys.queue, keys.timeouts, keys.clients],
    args: [owner, client.store.publish, waiterTimeoutMillis]
  }),
  forceRelease: (keys, publish) => ({
    operation: "fair_lock/force_release",
    keys: [keys.lock, keys.channel, keys.queue, keys.timeouts, keys.clients],
    args: [publish]
  })
}

/**
 * A fair lock that its holder cannot take again.
 */
export const nonReentrantFair: LockProtocol = {
  ...fair,
  name: "nonReentrantFair",
  title: "fair NonReentrantLock",
  reentrant: false
}
