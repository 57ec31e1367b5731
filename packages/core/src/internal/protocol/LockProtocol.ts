/**
 * What differs between the kinds of lock: the operations, what they share a lock with, and how they wait. Asking, losing,
 * renewing and releasing are the same for all.
 */
import type * as Schedule from "effect/Schedule"
import type { LockKeys } from "../store/keys.ts"
import type { AcquireReply } from "../store/operations/replies.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"
import type { ProtocolClient } from "./ProtocolClient.ts"

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
 * How an owner asks.
 */
export interface AcquireParams {
  readonly leaseMillis: number
  /** Whether it will wait when it is denied. */
  readonly waits: boolean
  /** The write lock under which a reader asks. */
  readonly writer: { readonly owner: string; readonly token: number } | undefined
}

/**
 * With whom a lock is shared: with nobody, or among readers; or as far as there are permits.
 */
export type Mode = "exclusive" | "read" | "write" | "permit"

export interface LockProtocol {
  /** In metrics and spans. */
  readonly name: string
  /** In messages. */
  readonly title: string
  readonly mode: Mode
  /** Whether an owner may take again what it holds. */
  readonly reentrant: boolean
  /**
   * Whether each waiter has a place in a queue in Redis, so that it asks under one owner until it gives up. Not for quorums:
   * their members' queues may differ, and nobody's turn would come.
   */
  readonly queued: boolean
  /** Whether each grant has a fencing token, and leaves it behind. */
  readonly hasTokens: boolean
  /** Whether several of them may be taken by one script call. */
  readonly together: boolean
  /** The pauses between two attempts, for a kind that never subscribes. */
  readonly backoff: Schedule.Schedule<unknown> | undefined
  /** Where a waiter listens. */
  readonly channel: (keys: LockKeys, owner: string) => string
  readonly acquire: (ownerRef: OwnerRef, asking: AcquireParams) => StoreCommand<AcquireReply>
  /** Adds a hold, the `count`th; replies 1, or 0 when the owner does not hold. */
  readonly addHold: (ownerRef: OwnerRef, count: number, leaseMillis: number) => StoreCommand<number>
  /** Ends the hold of this number, so that `count` remain; replies below 1 when the owner does not hold. */
  readonly removeHold: (ownerRef: OwnerRef, count: number, number: number) => StoreCommand<number>
  /**
   * Replies 1 + the number of clients that were listening: released; 0 free; -1 held by another. `publish` is the command that
   * tells them, or empty to tell nobody: only for kinds that a quorum can keep.
   */
  readonly release: (ownerRef: OwnerRef, publish: string) => StoreCommand<number>
  /** Extends the leases of many owners of this mode, all in one slot; replies 1, 0, or -1 (a quorum cannot tell) for each. */
  readonly renew: (
    ownerRefs: ReadonlyArray<OwnerRef & { readonly holds: number }>,
    leaseMillis: number
  ) => StoreCommand<ReadonlyArray<number>>
  /** Replies 1, or 0 when nobody held it. */
  readonly forceRelease: (keys: LockKeys, publish: string) => StoreCommand<number>
  /** Takes back what a waiter has told others, when the last one of this client gives up. */
  readonly cancelWriterIntent: ((client: ProtocolClient, keys: LockKeys) => StoreCommand<number>) | undefined
}

/** How long the last fencing token is remembered after a grant with this lease, milliseconds. */
export const tokenLife = ({ options }: ProtocolClient, leaseMillis: number): number =>
  leaseMillis + options.tokenRetentionMillis

/** Where the last fencing token is: under the lock itself, which is no key of a token, for a kind that has none. */
export const tokenKey = ({ hasTokens }: LockProtocol, keys: LockKeys): string => (hasTokens ? keys.token : keys.lock)

/** The same kind without fencing tokens. */
export const withoutTokens = (kind: LockProtocol): LockProtocol => ({ ...kind, hasTokens: false })
