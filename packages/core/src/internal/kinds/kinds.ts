/**
 * The kinds that share Redisson's hash of one owner, and exclude each other under one name.
 */
import type * as Schedule from "effect/Schedule"
import { semaphoreChannel } from "../store/keys.ts"
import * as fairLock from "../store/operations/fairLock.ts"
import * as lock from "../store/operations/lock.ts"
import * as permitSemaphore from "../store/operations/permitSemaphore.ts"
import * as readWriteLock from "../store/operations/readWriteLock.ts"
import {
  handOverTerms,
  type LockProtocol,
  type OwnerRef,
  placeOf,
  type ProtocolClient,
  takesPlaces,
  tokenKey,
  tokenLife
} from "./LockProtocol.ts"

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
  acquire: (ask) => {
    const { client, keys, kind, leaseMillis, owner } = ask
    const tokenLifeMillis = tokenLife(client, leaseMillis)
    return lock.acquire(keys, tokenKey(kind, keys), owner, { leaseMillis, tokenLifeMillis }, placeOf(ask))
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
  forceRelease: lock.forceRelease
}

/**
 * Redisson's RFencedLock: its tokens are a counter.
 */
export const fenced: LockProtocol = {
  ...reentrant,
  name: "fenced",
  title: "FencedLock",
  together: false,
  acquire: (ask) => lock.acquireFenced(ask.keys, ask.owner, ask.leaseMillis, placeOf(ask))
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

/**
 * Redisson's fair lock: first come, first served, across all clients.
 */

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
  acquire: ({ client, keys, kind, leaseMillis, owner, waits }) =>
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

/**
 * The two sides of Redisson's RReadWriteLock.
 */

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
  acquire: (ask) => {
    const { keys, kind, leaseMillis, owner, writer } = ask
    const waitedMillis = preference === "writer" ? ask.waitedMillis : undefined
    const terms = { leaseMillis, waitedMillis, writer }
    return readWriteLock.acquireRead(keys, tokenKey(kind, keys), owner, terms, placeOf(ask))
  },
  addHold: ({ keys, owner }, count, leaseMillis) => readWriteLock.holdRead(keys, owner, count, leaseMillis),
  removeHold: ({ client, keys, owner }, count, number) =>
    readWriteLock.removeReadHold(keys, owner, count, number, client.store.publish),
  release: (ownerRef, publish) =>
    readWriteLock.releaseRead(ownerRef.keys, ownerRef.owner, publish, handOverTerms(ownerRef)),
  renew: readWriteLock.renewRead,
  forceRelease: readWriteLock.forceReleaseRead
})

const field = (owner: string): string => `${owner}:write`

/**
 * Whose place a writer takes: its own; or, where the lock is handed over to nobody and each request has another owner, its client's,
 * behind which readers wait all the same.
 */
const placeOwnerOf = (ownerRef: OwnerRef): string => (takesPlaces(ownerRef) ? ownerRef.owner : ownerRef.client.clientId)

export const write: LockProtocol = {
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
  acquire: (ask) => {
    const { client, hasAsked, keys, kind, leaseMillis, owner, waits } = ask
    const terms = {
      leaseMillis,
      tokenLifeMillis: tokenLife(client, leaseMillis),
      placeOwner: waits ? placeOwnerOf(ask) : "",
      hasAsked
    }
    return readWriteLock.acquireWrite(keys, tokenKey(kind, keys), owner, terms)
  },
  addHold: ({ keys, owner }, count, leaseMillis) => lock.hold(keys, field(owner), count, leaseMillis),
  removeHold: ({ keys, owner }, count) => lock.hold(keys, field(owner), count, 0),
  release: (ownerRef, publish) => {
    const { keys, owner } = ownerRef
    // what a minority of a quorum has granted is given back silently, and its client goes on waiting
    const placeOwner = publish === "" ? "" : placeOwnerOf(ownerRef)
    return readWriteLock.releaseWrite(keys, owner, publish, placeOwner, handOverTerms(ownerRef))
  },
  renew: (ownerRefs, leaseMillis) =>
    lock.renew(
      ownerRefs.map(({ keys }) => keys.lock),
      ownerRefs.map(({ owner }) => field(owner)),
      leaseMillis
    ),
  forceRelease: readWriteLock.forceReleaseWrite
}

/**
 * Redisson's permit-expirable semaphore: its holds are permits with ids. The owner is the ids, joined by commas.
 */

/** Name used in messages. */
export const permitSemaphoreTitle = "PermitSemaphore"

export const idsOf = (owner: string): ReadonlyArray<string> => owner.split(",")

export interface PermitProtocol extends LockProtocol {
  /** The permits with which a missing semaphore is created; undefined not to create it. */
  readonly initial: number | undefined
}

const never = (): never => {
  throw new Error("permits are neither acquired like locks, nor re-entered, nor force-released")
}

export const permit = (initial: number | undefined): PermitProtocol => ({
  initial,
  name: "permit_semaphore",
  title: permitSemaphoreTitle,
  mode: "permit",
  reentrant: false,
  queued: false,
  handsOver: false,
  hasTokens: false,
  together: false,
  backoff: undefined,
  channel: (keys) => semaphoreChannel(keys.lock),
  // never acquired like a lock: permits have a reply of their own
  acquire: never,
  addHold: never,
  removeHold: never,
  release: ({ client, keys, owner }) => permitSemaphore.release(keys.lock, idsOf(owner), client.store),
  renew: (ownerRefs, leaseMillis) =>
    permitSemaphore.renew(
      ownerRefs.map(({ keys }) => keys.lock),
      ownerRefs.map(({ owner }) => owner),
      leaseMillis
    ),
  forceRelease: never
})

/**
 * The reply of a semaphore: the grant, if any; how many permits are free now; in how many milliseconds a lease ends
 * (unknown if below zero); whether the semaphore exists; and for how many seconds at a time permits are kept for such a request, at most.
 */
export interface PermitReply<A> {
  readonly granted: A | undefined
  readonly available: number
  readonly remaining: number
  readonly exists: boolean
  readonly longestKept: number
}

/** The name of a latch in messages. */
export const latchTitle = "CountDownLatch"
