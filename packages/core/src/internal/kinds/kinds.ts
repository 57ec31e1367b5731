/**
 * The kinds of lock, and nothing but their differences: their operations, their mode, and how they wait. Acquiring, losing, renewing and
 * releasing are the same for all.
 */
import type * as Schedule from "effect/Schedule"
import type { LockClient } from "../client/LockClient.ts"
import { handOverMillis } from "../options/ClientOptions.ts"
import { type LockKeys, semaphoreChannel } from "../store/keys.ts"
import * as fairLock from "../store/operations/fairLock.ts"
import * as lock from "../store/operations/lock.ts"
import type { Asked, HandOverTerms, Leases, TakesPlace } from "../store/operations/lock.ts"
import type { PermitsReply, Wants } from "../store/operations/semaphore.ts"
import * as permitSemaphore from "../store/operations/permitSemaphore.ts"
import * as readWriteLock from "../store/operations/readWriteLock.ts"
import * as semaphore from "../store/operations/semaphore.ts"
import type { AcquireReply, StoreCommand } from "../store/operations/StoreOperation.ts"

/** One lock of one client. */
export interface LockRef {
  readonly client: LockClient
  readonly kind: LockProtocol
  readonly name: string
  readonly keys: LockKeys
}

/** One owner of one lock. */
export interface OwnerRef extends LockRef {
  readonly owner: string
  /** Until when the lock stays taken even if it is released before, on the monotonic clock; absent or 0 if it does not. */
  readonly keptUntil?: number
  /** When its lease is over, on the monotonic clock; absent where it is not known. */
  readonly overAt?: number
  /** How many permits it has, if they are anonymous. */
  readonly permits?: number
  /** How long Redis is to remember their return, milliseconds; 0 or absent for the return of a grant that Redis still remembers. */
  readonly trustedMillis?: number
}

export const ownerRefOf = ({ client, keys, kind, name }: LockRef, owner: string): OwnerRef => ({
  client,
  kind,
  name,
  keys,
  owner
})

/** A request for a lock, with what only some kinds need. */
export interface AcquireParams extends Asked, TakesPlace {
  /** Whether the owner will wait if the lock is denied. */
  readonly waits: boolean
  /** By what it recognises the message that hands a fair lock over to it. */
  readonly secret: string
  /** How long the caller has waited. */
  readonly waitedMillis: number
  /** The write lock that a reader holds. */
  readonly writer: { readonly owner: string; readonly token: number } | undefined
}

/**
 * How a lock is shared: not at all, among readers, or as far as there are permits.
 */
export type Mode = "exclusive" | "read" | "write" | "permit"

export interface LockProtocol {
  /** Name used in metrics and spans. */
  readonly name: string
  /** Name used in messages. */
  readonly title: string
  readonly mode: Mode
  /** Whether an owner may acquire its lock again. */
  readonly reentrant: boolean
  /** Whether it frees itself when its lease is over. */
  readonly isLeased: boolean
  /**
   * Whether each waiter has a place in a queue in Redis, so it retries with the same owner id. Not for quorums: their
   * members' queues may differ, so that nobody's turn would come.
   */
  readonly queued: boolean
  /**
   * Whether a release hands the lock to the client that has waited longest, where the store can: a client that waits, and does not poll, has a
   * place in Redis, on each side of a read-write lock, under the owner id with which it asks until it is granted.
   */
  readonly handsOver: boolean
  /** Whether each grant has a fencing token and leaves it in Redis. */
  readonly hasTokens: boolean
  /** Whether they are Redisson's counter, and not the server's time. */
  readonly countsTokens: boolean
  /** The pauses between attempts, for a kind that never subscribes. */
  readonly backoff: Schedule.Schedule<unknown> | undefined
  /** The channel that a waiter subscribes to. */
  readonly channel: (keys: LockKeys, owner: string) => string
  readonly acquire: (ask: OwnerRef & AcquireParams) => StoreCommand<AcquireReply>
  /**
   * Replies 1 + the number of clients that were woken to ask if released, 0 if free, -1 if held by another owner. `tell` is the
   * command that notifies them; or the owner that the lock is left to, where it hands over; or empty to notify nobody: only for kinds that a
   * quorum can keep.
   */
  readonly release: (ownerRef: OwnerRef, tell: string) => StoreCommand<number>
  /** Extends the leases of many owners of this mode, all in one slot; replies 1, 0, or -1 (a quorum cannot tell) for each. */
  readonly renew: (ownerRefs: ReadonlyArray<OwnerRef>, leases: Leases) => StoreCommand<ReadonlyArray<number>>
  /** Takes the lock from these owners, or without any from whoever holds it; replies 1, or 0 if nobody or others held it. */
  readonly forceRelease: (keys: LockKeys, publish: string, owners: ReadonlyArray<string>) => StoreCommand<number>
}

/** Whether a release hands the lock over. */
export const handsOver = ({ client, kind }: Pick<OwnerRef, "client" | "kind">): boolean =>
  kind.handsOver && client.store.handsOver

/** Whether one command may acquire or release it together with other locks of its client: with those that have the scripts of a `Lock`. */
export const goesTogether = ({ client, kind }: Pick<OwnerRef, "client" | "kind">): boolean =>
  kind.acquire === reentrant.acquire && kind.release === reentrant.release && !client.isQuorum

/** Whether a client that waits takes a place, for a release to hand the lock over to it; one that polls would not hear of that. */
export const takesPlaces = ({ client, kind }: Pick<OwnerRef, "client" | "kind">): boolean =>
  kind.backoff === undefined && kind.handsOver && client.store.handsOver

/** How a release hands the lock over; undefined if it does not. */
export const handOverTerms = (ownerRef: OwnerRef): HandOverTerms | undefined =>
  handsOver(ownerRef) ? termsOf(ownerRef) : undefined

const termsOf = ({ client, keys, kind }: OwnerRef): HandOverTerms => {
  const { watchdogLeaseMillis } = client.options
  return {
    leaseMillis: Math.ceil(handOverMillis(watchdogLeaseMillis)),
    tokenKey: tokenKey(kind, keys),
    tokenLifeMillis: kind.countsTokens ? undefined : tokenLife(client, watchdogLeaseMillis)
  }
}

/** How long Redis remembers the last fencing token after a grant with this lease, in milliseconds. */
export const tokenLife = ({ options }: LockClient, leaseMillis: number): number =>
  leaseMillis + options.tokenRetentionMillis

/** The key of the last fencing token; for a kind without tokens the lock itself, which is never a token's key. */
export const tokenKey = ({ hasTokens }: LockProtocol, keys: LockKeys): string => (hasTokens ? keys.token : keys.lock)

/** Tokens are times of the server, in microseconds and above this, but for those of a `FencedLock`, which count. */
export const leastTime = 1_000_000_000_000_000

/** Whether a hold excludes a mode. Redis refuses kinds that cannot share a name. */
export const excludes = (held: Mode, wanted: Mode): boolean =>
  held === "read" || held === "write"
    ? wanted === "write" || (held === "write" && wanted === "read")
    : held === "exclusive" && wanted === "exclusive"

/**
 * Redisson's RLock: reentrant, unfair.
 */
export const reentrant: LockProtocol = {
  name: "reentrant",
  title: "Lock",
  mode: "exclusive",
  reentrant: true,
  isLeased: true,
  queued: false,
  handsOver: true,
  hasTokens: true,
  countsTokens: false,
  backoff: undefined,
  channel: (keys) => keys.channel,
  acquire: lock.acquire,
  release: (ownerRef, tell) => lock.release(ownerRef.keys, ownerRef.owner, tell, handOverTerms(ownerRef)),
  renew: lock.renew,
  forceRelease: lock.forceRelease
}

/**
 * Redisson's RFencedLock: its tokens are a counter.
 */
export const fenced: LockProtocol = {
  ...reentrant,
  name: "fenced",
  title: "FencedLock",
  countsTokens: true,
  acquire: lock.acquireFenced
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

/** Redisson's fairLockWaitTimeout: each waiter adds it to the scores of those behind it, and takes it off when it is served or gives up. */
export const waiterTimeoutMillis = 300_000

/** How long the places of a client's waiters for a fair lock outlive its last report. */
const fairPlaceLifeMillis = 1500

export const placeTermsOf = ({ clientId, store }: LockClient, timeoutMillis: number): fairLock.PlaceTerms => ({
  waiterTimeoutMillis: timeoutMillis,
  clientId,
  placeLifeMillis: fairPlaceLifeMillis,
  publish: store.publish
})

/**
 * Redisson's fair lock: first come, first served, across all clients.
 */
export const fair: LockProtocol = {
  ...reentrant,
  name: "fair",
  title: "FairLock",
  queued: true,
  handsOver: false,
  channel: (keys, owner) => `${keys.channel}:${owner}`,
  acquire: (ask) => fairLock.acquire(ask, placeTermsOf(ask.client, ask.waits ? waiterTimeoutMillis : 0)),
  release: (ownerRef) => {
    const { client, keys, owner } = ownerRef
    const terms = termsOf(ownerRef)
    // a head that has died holds up the others for no longer than its place would
    const leaseMillis = Math.min(terms.leaseMillis, fairPlaceLifeMillis)
    return fairLock.release(keys, owner, client.store.publish, { ...terms, leaseMillis }, waiterTimeoutMillis)
  },
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

/** What the two sides of Redisson's RReadWriteLock share. */
const side: LockProtocol = { ...reentrant, title: "ReadWriteLock", channel: (keys) => keys.readWriteChannel }

export type Preference = "writer" | "reader"

export const read = (preference: Preference): LockProtocol => ({
  ...side,
  name: "read",
  mode: "read",
  acquire: (ask) => readWriteLock.acquireRead(ask, preference === "writer" ? ask.waitedMillis : undefined),
  release: (ownerRef, tell) => readWriteLock.releaseRead(ownerRef.keys, ownerRef.owner, tell, handOverTerms(ownerRef)),
  renew: readWriteLock.renewRead,
  forceRelease: readWriteLock.forceReleaseRead
})

/**
 * Whose place a writer takes: its own; or, where the lock is handed over to nobody and each request has another owner, its client's,
 * behind which readers wait all the same.
 */
const placeOwnerOf = (ownerRef: OwnerRef): string => (takesPlaces(ownerRef) ? ownerRef.owner : ownerRef.client.clientId)

export const write: LockProtocol = {
  ...side,
  name: "write",
  mode: "write",
  acquire: (ask) => readWriteLock.acquireWrite(ask, ask.waits ? placeOwnerOf(ask) : ""),
  release: (ownerRef, tell) => {
    const { client, keys, owner } = ownerRef
    // what a minority of a quorum has granted is given back silently, and its client goes on waiting; others of its fibers may wait as well
    const keepsPlace = tell === "" || (!takesPlaces(ownerRef) && client.lines.get(keys.lock, "write") !== undefined)
    const placeOwner = keepsPlace ? "" : placeOwnerOf(ownerRef)
    return readWriteLock.releaseWrite(keys, owner, tell, placeOwner, handOverTerms(ownerRef))
  },
  renew: (ownerRefs, leases) =>
    lock.renew(
      ownerRefs.map(({ keys, owner }) => ({ keys, owner: `${owner}:write` })),
      leases
    ),
  forceRelease: readWriteLock.forceReleaseWrite
}

/** The ids of which the owner of permits consists. */
export const idsOf = (owner: string): ReadonlyArray<string> => owner.split(",")

/** How many entries of Redis a command looks at for a lease: permits have one each. */
export const sizeOf = ({ kind, owner }: Pick<OwnerRef, "kind" | "owner">): number =>
  kind.mode === "permit" ? Math.ceil(owner.length / (32 + 1)) : 1

/** How permits are asked for. */
export interface PermitProtocol extends LockProtocol {
  /** The permits with which a missing semaphore is created; undefined not to create it. */
  readonly initial: number | undefined
  /** The owner of so many permits. */
  readonly newOwner: (client: LockClient, permits: number) => string
  readonly ask: (
    ownerRef: OwnerRef & { readonly permits: number },
    leaseMillis: number,
    wants: Wants
  ) => StoreCommand<PermitsReply>
}

const never = (): never => {
  throw new Error("permits are neither acquired like locks, nor force-released")
}

const anyPermit: LockProtocol = {
  ...reentrant,
  mode: "permit",
  reentrant: false,
  handsOver: false,
  hasTokens: false,
  channel: (keys) => semaphoreChannel(keys.lock),
  acquire: never,
  forceRelease: never
}

/**
 * Redisson's permit-expirable semaphore: its holds are permits with ids. The owner is the ids, joined by commas: 32 hexadecimal digits each.
 */
export const permit = (initial: number | undefined): PermitProtocol => ({
  ...anyPermit,
  initial,
  name: "permit_semaphore",
  title: "PermitSemaphore",
  newOwner: (_client, permits) =>
    Array.from({ length: permits }, () => crypto.randomUUID().replaceAll("-", "")).join(","),
  ask: ({ client, keys, owner }, leaseMillis, wants) =>
    permitSemaphore.acquire(keys.lock, { ids: idsOf(owner), leaseMillis }, wants, client.store),
  release: ({ client, keys, owner }) => permitSemaphore.release(keys.lock, idsOf(owner), client.store),
  renew: permitSemaphore.renew
})

/**
 * Redisson's semaphore: a counter, which does not know whose permits are. The owner is the id of the marker that each grant leaves beside
 * it, with which the grant is given back exactly once, no matter how often that is requested. The marker lives as long as a lease.
 */
export const anonymousPermit = (initial: number | undefined): PermitProtocol => ({
  ...anyPermit,
  initial,
  name: "semaphore",
  title: "Semaphore",
  isLeased: false,
  newOwner: (client) => client.nextOwner(),
  ask: ({ client, keys, owner, permits }, markerMillis, wants) =>
    semaphore.acquire(keys.lock, { id: owner, markerMillis, permits }, wants, client.store),
  release: ({ client, keys, owner, permits = 0, trustedMillis = 0 }) =>
    semaphore.giveBack(keys.lock, { id: owner, permits }, trustedMillis, client.store),
  renew: never
})

/** The name of a latch in messages. */
export const latchTitle = "CountDownLatch"
