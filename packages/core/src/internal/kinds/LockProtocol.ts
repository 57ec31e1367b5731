/**
 * The differences between the kinds of lock: their operations, their mode, and how they wait. Acquiring, losing, renewing
 * and releasing are the same for all.
 */
import type * as Schedule from "effect/Schedule"
import type { LockStore } from "../../LockStore.ts"
import type { ClientOptions } from "../options/ClientOptions.ts"
import type { LockKeys } from "../store/keys.ts"
import type { AcquireReply, StoreCommand } from "../store/operations/StoreOperation.ts"
import type { HandOverTerms, TakesPlace } from "../store/operations/lock.ts"

/**
 * One owner of one lock.
 */
export interface OwnerRef {
  readonly client: ProtocolClient
  readonly kind: LockProtocol
  readonly name: string
  readonly keys: LockKeys
  readonly owner: string
}

/**
 * Parameters of an acquire command.
 */
export interface AcquireParams {
  readonly leaseMillis: number
  /** Whether the owner will wait if the lock is denied. */
  readonly waits: boolean
  /** Whether it has asked before, and may have a place. */
  readonly hasAsked: boolean
  /** Whether it takes its client's place if it is denied; not while another request of that client does. */
  readonly takesPlace: boolean
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
  /**
   * Whether each waiter has a place in a queue in Redis, so it retries with the same owner id. Not for quorums: their
   * members' queues may differ, so that nobody's turn would come.
   */
  readonly queued: boolean
  /**
   * Whether a release hands the lock to the client that has waited longest: a client that waits, and does not poll, has a place in Redis, on
   * each side of a read-write lock, under the owner id with which it asks until it is granted.
   */
  readonly handsOver: boolean
  /** Whether each grant has a fencing token and leaves it in Redis. */
  readonly hasTokens: boolean
  /** Whether one script call may acquire several locks of this kind. */
  readonly together: boolean
  /** The pauses between attempts, for a kind that never subscribes. */
  readonly backoff: Schedule.Schedule<unknown> | undefined
  /** The channel that a waiter subscribes to. */
  readonly channel: (keys: LockKeys, owner: string) => string
  readonly acquire: (ask: OwnerRef & AcquireParams) => StoreCommand<AcquireReply>
  /** Adds a hold, the `count`th; replies 1, or 0 if the owner does not hold the lock. */
  readonly addHold: (ownerRef: OwnerRef, count: number, leaseMillis: number) => StoreCommand<number>
  /** Ends the hold of this number, so that `count` remain; replies below 1 if the owner does not hold the lock. */
  readonly removeHold: (ownerRef: OwnerRef, count: number, number: number) => StoreCommand<number>
  /**
   * Replies 1 + the number of clients that were woken to ask if released, 0 if free, -1 if held by another owner. `publish` is the
   * command that notifies them, or empty to notify nobody: only for kinds that a quorum can keep.
   */
  readonly release: (ownerRef: OwnerRef, publish: string) => StoreCommand<number>
  /** Extends the leases of many owners of this mode, all in one slot; replies 1, 0, or -1 (a quorum cannot tell) for each. */
  readonly renew: (
    ownerRefs: ReadonlyArray<OwnerRef & { readonly holds: number }>,
    leaseMillis: number
  ) => StoreCommand<ReadonlyArray<number>>
  /** Takes the lock from these owners, or without any from whoever holds it; replies 1, or 0 if nobody or others held it. */
  readonly forceRelease: (keys: LockKeys, publish: string, owners: ReadonlyArray<string>) => StoreCommand<number>
}

/** Whether a release hands the lock over to a client that has a place. */
export const handsOver = ({ client, kind }: Pick<OwnerRef, "client" | "kind">): boolean =>
  kind.handsOver && client.store.handsOver

/** Whether a client that waits takes a place, for a release to hand the lock over to it; one that polls would not hear of that. */
export const takesPlaces = (ownerRef: Pick<OwnerRef, "client" | "kind">): boolean =>
  ownerRef.kind.backoff === undefined && handsOver(ownerRef)

/** How long a lock is kept for an owner that it was handed over to, until it asks, in milliseconds: short, as its process may be stopped. */
const handOver: HandOverTerms = { leaseMillis: 2000 }

/** How a release hands the lock over; undefined if it does not. */
export const handOverTerms = (ownerRef: OwnerRef): HandOverTerms | undefined =>
  handsOver(ownerRef) ? handOver : undefined

/** The place that a denied request takes, if any. */
export const placeOf = (ask: OwnerRef & AcquireParams): TakesPlace | undefined =>
  ask.waits && ask.takesPlace && takesPlaces(ask) ? ask : undefined

/** How long Redis remembers the last fencing token after a grant with this lease, in milliseconds. */
export const tokenLife = ({ options }: ProtocolClient, leaseMillis: number): number =>
  leaseMillis + options.tokenRetentionMillis

/** The key of the last fencing token; for a kind without tokens the lock itself, which is never a token's key. */
export const tokenKey = ({ hasTokens }: LockProtocol, keys: LockKeys): string => (hasTokens ? keys.token : keys.lock)

/** The same kind without fencing tokens. */
export const withoutTokens = (kind: LockProtocol): LockProtocol => ({ ...kind, hasTokens: false })

/** Whether a hold excludes a mode. Redis refuses kinds that cannot share a name. */
export const excludes = (held: Mode, wanted: Mode): boolean =>
  held === "read" || held === "write"
    ? wanted === "write" || (held === "write" && wanted === "read")
    : held === "exclusive" && wanted === "exclusive"

/** The part of the client that a protocol needs: a protocol makes commands and sends none. */
export interface ProtocolClient {
  /** A random UUID; owners are `<clientId>:<number>`, as in Redisson. */
  readonly clientId: string
  readonly store: LockStore["Service"]
  readonly options: ClientOptions
}
