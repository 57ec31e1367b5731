/**
 * What the failures of members mean to a `MultiLock`: which of them may pass while it waits.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockStoreError, LockTimeout, QuorumNotReached } from "../../../LockError.ts"
import { isRetryable, transientFailure } from "../../store/transient.ts"

/** A member was denied, or its store failed for a reason that may pass. */
export interface Denied {
  readonly blocker: number | undefined
  /** The transient failure of the store that hides the blocker. */
  readonly failure: LockStoreError | QuorumNotReached | undefined
}

export const isTimeout = (reason: Cause.Reason<unknown>): reason is Cause.Fail<LockTimeout> =>
  reason._tag === "Fail" && reason.error instanceof LockTimeout

/** Turns a transient failure into a value, so that a waiter retries. */
export const orTransient = <A, E>(self: Effect.Effect<A, E>): Effect.Effect<A | Denied, E> =>
  Effect.catchCause(self, (cause): Effect.Effect<Denied, E> => {
    const failure = transientFailure(cause) ?? transientQuorum(cause)
    return failure === undefined ? Effect.failCause(cause) : Effect.succeed({ blocker: undefined, failure })
  })

/** The transient failure of a member that is a `RedLock`. */
const transientQuorum = (cause: Cause.Cause<unknown>): QuorumNotReached | undefined => {
  let failure: QuorumNotReached | undefined
  for (const reason of cause.reasons) {
    // requests beside the failed one are interrupted
    if (reason._tag === "Interrupt") continue
    if (reason._tag !== "Fail" || !isNotForGood(reason.error)) return undefined
    if (reason.error instanceof QuorumNotReached) failure ??= reason.error
  }
  return failure
}

export const isNotForGood = (error: unknown): boolean =>
  error instanceof LockTimeout ||
  (error instanceof LockStoreError && isRetryable(error)) ||
  (error instanceof QuorumNotReached && error.isTransient)

export const isStoreFailure = (error: unknown): error is LockStoreError | QuorumNotReached =>
  error instanceof LockStoreError || error instanceof QuorumNotReached
