/**
 * The two sides of Redisson's RReadWriteLock.
 */
import * as lock from "../store/operations/lock.ts"
import * as readWriteLock from "../store/operations/readWriteLock.ts"
import { type LockProtocol, tokenKey, tokenLife } from "./LockProtocol.ts"

/** How long a waiting writer holds off readers without a new request, in fallback intervals and at most. */
const announcedIntervals = 3
const longestAnnouncementMillis = 5000

export type Preference = "writer" | "reader"

export const read = (preference: Preference): LockProtocol => ({
  name: "read",
  title: "ReadWriteLock",
  mode: "read",
  reentrant: true,
  queued: false,
  handsOver: false,
  hasTokens: true,
  together: false,
  backoff: undefined,
  channel: (keys) => keys.readWriteChannel,
  acquire: ({ keys, kind, owner }, { leaseMillis, writer }) =>
    readWriteLock.acquireRead(keys, tokenKey(kind, keys), owner, leaseMillis, {
      prefersWriters: preference === "writer",
      writer
    }),
  addHold: ({ keys, owner }, count, leaseMillis) => readWriteLock.holdRead(keys, owner, count, leaseMillis),
  removeHold: ({ client, keys, owner }, count, number) =>
    readWriteLock.removeReadHold(keys, owner, count, number, client.store.publish),
  release: ({ keys, owner }, publish) => readWriteLock.releaseRead(keys, owner, publish),
  renew: readWriteLock.renewRead,
  forceRelease: readWriteLock.forceReleaseRead,
  cancelWriterIntent: undefined
})

const field = (owner: string): string => `${owner}:write`

export const write = (preference: Preference): LockProtocol => ({
  name: "write",
  title: "ReadWriteLock",
  mode: "write",
  reentrant: true,
  queued: false,
  handsOver: false,
  hasTokens: true,
  together: false,
  backoff: undefined,
  channel: (keys) => keys.readWriteChannel,
  acquire: ({ client, keys, kind, owner }, { leaseMillis, waits }) =>
    readWriteLock.acquireWrite(keys, tokenKey(kind, keys), owner, {
      leaseMillis,
      tokenLifeMillis: tokenLife(client, leaseMillis),
      clientId: client.clientId,
      announcementMillis:
        waits && preference === "writer"
          ? Math.min(announcedIntervals * client.options.fallbackIntervalMillis, longestAnnouncementMillis)
          : 0
    }),
  addHold: ({ keys, owner }, count, leaseMillis) => lock.hold(keys, field(owner), count, leaseMillis),
  removeHold: ({ keys, owner }, count) => lock.hold(keys, field(owner), count, 0),
  release: ({ keys, owner }, publish) => readWriteLock.releaseWrite(keys, owner, publish),
  renew: (ownerRefs, leaseMillis) =>
    lock.renew(
      ownerRefs.map(({ keys }) => keys.lock),
      ownerRefs.map(({ owner }) => field(owner)),
      leaseMillis
    ),
  forceRelease: readWriteLock.forceReleaseWrite,
  cancelWriterIntent:
    preference === "reader"
      ? undefined
      : (client, keys) => readWriteLock.withdraw(keys, client.clientId, client.store.publish)
})
