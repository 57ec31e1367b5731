/**
 * What Redis has under a name.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * The state of a name in Redis, for any kind of lock or synchronizer, held or free.
 *
 * @category models
 * @since 0.3.0
 */
export interface LockState {
  readonly name: string
  /**
   * The kind, as far as Redis shows it. `lock`: any exclusive lock; `fair lock`: an exclusive lock with a queue of
   * waiters; `permit semaphore`: a semaphore with leased permits, some of them held; `counter`: a semaphore or a latch, as
   * Redis keeps just a number for either; `other`: a value of another type; `none`: nothing, except perhaps a token.
   */
  readonly kind: "lock" | "fair lock" | "read-write lock" | "permit semaphore" | "counter" | "other" | "none"
  /** Empty if nobody holds the lock. */
  readonly holders: ReadonlyArray<HolderState>
  /** The last fencing token of the name; absent if Redis remembers none. */
  readonly token: bigint | undefined
  /**
   * The waiters, as far as Redis knows, at most a thousand: of a fair lock the queue, in its order; of another lock one waiter of
   * each process, of a read-write lock one on each side, in the order of their waits. Waiters that have no place in a queue (a
   * `SpinLock`'s, and others: docs/contention.md) are not known, except the clients that have a waiting writer, and of Redisson's
   * clients those in the queue of a fair lock.
   */
  readonly waiters: ReadonlyArray<WaiterState>
  /** How many wait, as far as Redis knows. */
  readonly waiting: number
  /** Of a semaphore, how many permits are free; of a latch, its count. */
  readonly count: number | undefined
  /** Leased permits that are held, at most a thousand, those first whose lease ends first. */
  readonly permits: ReadonlyArray<{ readonly id: string; readonly remaining: Duration.Duration | undefined }>
  /** How many leased permits are held. */
  readonly held: number
}

/**
 * A holder of a lock.
 *
 * @category models
 * @since 0.3.0
 */
export interface HolderState {
  /** `<client uuid>:<id>`, and after the release of a lock that its `minHold` keeps, `<owner>:kept`. */
  readonly owner: string
  /** How many times it holds the lock, if it is a thread in Java. Clients of this library count re-entries themselves; theirs is 1. */
  readonly holdCount: number
  /** `read` and `write` are the sides of a read-write lock. */
  readonly mode: "exclusive" | "read" | "write"
  /** How long its lease still runs; absent if the key has no expiry. */
  readonly remaining: Duration.Duration | undefined
  /**
   * The label of its client; absent for clients of Redisson, and where a client has held and waited for less than a second.
   */
  readonly label?: string
  /** How long the only holder has held it, if its label and token are known. */
  readonly since?: Duration.Duration
}

/**
 * A waiter.
 *
 * @category models
 * @since 0.3.0
 */
export interface WaiterState {
  /** The owner as which it will hold the lock; of a read-write lock where waiters have no places, its client. */
  readonly owner: string
  /** Which side of a read-write lock it waits for. */
  readonly mode?: "read" | "write"
  /** The label of its client; absent as that of a holder is. */
  readonly label?: string
  /** How long its process has waited, if Redis knows. */
  readonly since?: Duration.Duration
}

/**
 * What has happened to a lock between two polls.
 *
 * @category models
 * @since 0.3.0
 */
export interface LockChange {
  /**
   * `Found`: it was held at the first poll. `Acquired`: it is held by other owners or permits than at the previous poll, or was
   * free then. `Changed`: a holder, its holds, a permit or the waiters have changed. `Renewed`: nothing but a lease has been
   * extended. `Released`: nobody holds it any more, because it was released, freed or has expired.
   */
  readonly _tag: "Found" | "Acquired" | "Changed" | "Renewed" | "Released"
  /** The state at this poll; of a lock that is released, at the previous one. */
  readonly state: LockState
}
