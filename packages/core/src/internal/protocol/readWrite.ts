/**
 * The two sides of Redisson's RReadWriteLock.
 */
import { type LockProtocol, tokenKey, tokenLife } from "./LockProtocol.ts"

/** For how long a waiting writer holds off readers without asking again, in fallback intervals and at most. */
const announcedIntervals = 3
const longestAnnouncementMillis = 5000

export type Preference = "writer" | "reader"

export const read = (preference: Preference): LockProtocol => ({
  name: "read",
  title: "ReadWriteLock",
  mode: "read",
  reentrant: true,
  queued: false,
  hasTokens: true,
  together: false,
  backoff: undefined,
  channel: (keys) => keys.readWriteChannel,
  acquire: ({ keys, kind, owner }, { leaseMillis, writer }) => ({
    operation: "read_lock/acquire",
    keys: [keys.lock, tokenKey(kind, keys), keys.readHold(owner, 1), keys.writers, keys.readers],
    args: [owner, leaseMillis, writer?.owner ?? "", writer?.token ?? 0, preference === "writer" ? 1 : 0]
  }),
  addHold: ({ keys, owner }, count, leaseMillis) => ({
    operation: "read_lock/hold",
    keys: [keys.lock, keys.readHold(owner, count), keys.readers],
    args: [owner, count, leaseMillis]
  }),
  removeHold: ({ client, keys, owner }, count, number) => ({
    operation: "read_lock/remove_hold",
    keys: [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers],
    args: [owner, count, client.store.publish, number]
  }),
  release: ({ keys, owner }, publish) => ({
    operation: "read_lock/release",
    keys: [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers],
    args: [owner, publish]
  }),
  renew: (ownerRefs, leaseMillis) => ({
    operation: "read_lock/renew",
    keys: ownerRefs.flatMap(({ holds, keys, owner }) => [
      keys.lock,
      keys.readers,
      ...Array.from({ length: holds }, (_, i) => keys.readHold(owner, i + 1))
    ]),
    args: [leaseMillis, ...ownerRefs.flatMap(({ holds, owner }) => [owner, holds])]
  }),
  forceRelease: (keys, publish) => ({
    operation: "read_lock/force_release",
    keys: [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers],
    args: [publish]
  }),
  cancelWriterIntent: undefined
})

const field = (owner: string): string => `${owner}:write`

export const write = (preference: Preference): LockProtocol => ({
  name: "write",
  title: "ReadWriteLock",
  mode: "write",
  reentrant: true,
  queued: false,
  hasTokens: true,
  together: false,
  backoff: undefined,
  channel: (keys) => keys.readWriteChannel,
  acquire: ({ client, keys, kind, owner }, { leaseMillis, waits }) => ({
    operation: "write_lock/acquire",
    keys: [keys.lock, tokenKey(kind, keys), keys.writers, keys.readers],
    args: [
      owner,
      leaseMillis,
      tokenLife(client, leaseMillis),
      client.clientId,
      waits && preference === "writer"
        ? Math.min(announcedIntervals * client.options.fallbackIntervalMillis, longestAnnouncementMillis)
        : 0,
      ""
    ]
  }),
  addHold: ({ keys, owner }, count, leaseMillis) => ({
    operation: "lock/hold",
    keys: [keys.lock],
    args: [field(owner), count, leaseMillis]
  }),
  removeHold: ({ keys, owner }, count) => ({
    operation: "lock/hold",
    keys: [keys.lock],
    args: [field(owner), count, 0]
  }),
  release: ({ keys, owner }, publish) => ({
    operation: "write_lock/release",
    keys: [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers],
    args: [owner, publish]
  }),
  renew: (ownerRefs, leaseMillis) => ({
    operation: "lock/renew",
    keys: ownerRefs.map(({ keys }) => keys.lock),
    args: [leaseMillis, ...ownerRefs.map(({ owner }) => field(owner))]
  }),
  forceRelease: (keys, publish) => ({
    operation: "write_lock/force_release",
    keys: [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers],
    args: [publish]
  }),
  cancelWriterIntent:
    preference === "reader"
      ? undefined
      : (client, keys) => ({
          operation: "write_lock/withdraw",
          keys: [keys.lock, keys.readWriteChannel, keys.writers],
          args: [client.clientId, client.store.publish]
        })
})
