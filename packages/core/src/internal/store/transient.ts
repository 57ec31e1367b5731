/**
 * Transient failures: a restart, a failover, a lost connection, a server that loads its data. A waiter treats them as if the lock
 * was taken: they cost time, and nothing else.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../LockError.ts"

/**
 * A grant whose lease was over before it was known.
 */
export class GrantedTooLate extends Error {
  /** Whether the lease is shorter than a slow round trip, so that another request would end the same way. */
  readonly isHopeless: boolean

  constructor(tookMillis: number, leaseMillis: number) {
    super(`the lock was granted after ${Math.round(tookMillis)} ms, too late for a lease of ${leaseMillis} ms`)
    this.isHopeless = leaseMillis < shortestLeaseMillis
  }
}

const shortestLeaseMillis = 1000

/** The failure of the store after which a waiter retries; undefined if a retry would not help. */
export const transientFailure = (cause: Cause.Cause<unknown>): LockStoreError | undefined => {
  let failure: LockStoreError | undefined
  for (const reason of cause.reasons) {
    // of several requests sent together, the others are interrupted
    if (reason._tag === "Interrupt") continue
    if (reason._tag !== "Fail" || !(reason.error instanceof LockStoreError) || !isRetryable(reason.error))
      return undefined
    failure ??= reason.error
  }
  return failure
}

/** Succeeds with a transient failure, for a waiter that retries. */
export const catchTransient = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A | LockStoreError, E> =>
  Effect.catchCause(effect, (cause): Effect.Effect<LockStoreError, E> => {
    const failure = transientFailure(cause)
    return failure === undefined ? Effect.failCause(cause) : Effect.succeed(failure)
  })

export const isRetryable = ({ cause, isTransient }: LockStoreError): boolean =>
  isTransient && !(cause instanceof GrantedTooLate && cause.isHopeless)

/**
 * Whether a failed release cannot succeed later. All other refusals may end while it is repeated, also those of a full disk or a
 * full memory.
 */
export const isFinal = ({ reason }: LockStoreError): boolean =>
  reason === "WrongType" || reason === "NoPermission" || reason === "NotAuthenticated"
