/**
 * The two sides of Redisson's RReadWriteLock.
 */
import * as lock from "../store/operations/lock.ts"
import * as readWriteLock from "../store/operations/readWriteLock.ts"
import { handOverTerms, type LockProtocol, placeOf, tokenKey, tokenLife } from "./LockProtocol.ts"

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
  handsOver: true,
  hasTokens: true,
  together: false,
  backoff: undefined,
  channel: (keys) => keys.readWriteChannel,
  acquire: (ownerRef, params) => {
    const { keys, kind, owner } = ownerRef
    const { isLetIn, leaseMillis, writer } = params
    const terms = { leaseMillis, prefersWriters: preference === "writer" && !isLetIn, writer }
    return readWriteLock.acquireRead(keys, tokenKey(kind, keys), owner, terms, placeOf(ownerRef, params))
  },
  addHold: ({ keys, owner }, count, leaseMillis) => readWriteLock.holdRead(keys, owner, count, leaseMillis),
  removeHold: ({ client, keys, owner }, count, number) =>
    readWriteLock.removeReadHold(keys, owner, count, number, client.store.publish),
  release: (ownerRef, publish) =>
    readWriteLock.releaseRead(ownerRef.keys, ownerRef.owner, publish, handOverTerms(ownerRef)),
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
  handsOver: true,
  hasTokens: true,
  together: false,
  backoff: undefined,
  channel: (keys) => keys.readWriteChannel,
  acquire: (ownerRef, params) => {
    const { client, keys, kind, owner } = ownerRef
    const { leaseMillis, waits } = params
    const terms = {
      leaseMillis,
      tokenLifeMillis: tokenLife(client, leaseMillis),
      clientId: client.clientId,
      announcementMillis:
        waits && preference === "writer"
          ? Math.min(announcedIntervals * client.options.fallbackIntervalMillis, longestAnnouncementMillis)
          : 0
    }
    return readWriteLock.acquireWrite(keys, tokenKey(kind, keys), owner, terms, placeOf(ownerRef, params))
  },
  addHold: ({ keys, owner }, count, leaseMillis) => lock.hold(keys, field(owner), count, leaseMillis),
  removeHold: ({ keys, owner }, count) => lock.hold(keys, field(owner), count, 0),
  release: (ownerRef, publish) =>
    readWriteLock.releaseWrite(ownerRef.keys, ownerRef.owner, publish, handOverTerms(ownerRef)),
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
