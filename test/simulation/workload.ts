/**
 * What the workers of a world do: which locks they take, and who may hold them at the same time.
 */
import { Context, type Effect } from "effect"
import type {
  AcquireError,
  Holding,
  Lock,
  LockLost,
  LockReentered,
  NotLockOwner,
  QuorumNotReached,
  RedisLock
} from "effect-redis-lock"
import type { Service } from "../kit/testStore.ts"

/** The services of a client, one for each server. */
export class Members extends Context.Service<Members, ReadonlyArray<Service>>()("Members") {}

/** A lock, one side of a read-write lock, or permits. */
export interface Side {
  /** The names that it acquires. */
  readonly names: ReadonlyArray<string>
  /** Who may hold it at the same time: nobody, other readers, or as many as there are permits left for. */
  readonly share: "nobody" | "readers" | { readonly permits: number; readonly of: number }
  readonly isReentrant: boolean
  /** Runs a section, which is given what was granted. */
  readonly run: (
    section: (granted: Granted) => Effect.Effect<void, Failure, LockServices>,
    options: Lock.AcquireOptions
  ) => Effect.Effect<void, Failure, LockServices>
}

export interface Granted {
  /** Present where tokens of this kind rise. */
  readonly token?: bigint
  readonly ensureHeld?: Holding<unknown>["ensureHeld"]
  readonly renew?: Holding<unknown>["renew"]
}

/** What a section needs: locks on one server or on a quorum, and on each server by itself. */
export type LockServices = RedisLock.RedisLock | Members

export type Failure = AcquireError | LockReentered | LockLost | NotLockOwner | QuorumNotReached

/** The locks that the workers of a world use, and what else it consists of. */
export interface Workload {
  readonly sides: ReadonlyArray<Side>
  /** Whether there is a latch. */
  readonly hasLatch?: boolean
  /** Whether servers always come back from a crash with their data: what has no lease would be lost for good. */
  readonly keepsData?: boolean
}
