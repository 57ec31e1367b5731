/**
 * Whether a command that failed may have taken effect.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { InvalidLockOptions, type LockStoreError, QuorumNotReached, type StoreReason } from "../../LockError.ts"

/** Replies with which Redis rejects a script before it starts, and failures before anything was sent. */
const notRun: ReadonlySet<StoreReason> = new Set([
  "ConnectionRefused",
  "NotConnected",
  "TooLate",
  "OutOfMemory",
  "ReadOnly",
  "PersistenceFailed",
  "NotEnoughReplicas",
  "Loading",
  "Busy",
  "NotAuthenticated",
  "WrongType",
  "Closed",
  "ClusterDown",
  "ClusterMismatch"
])

/** Whether the Redis user lacks a permission: that is reported once, and not again for the rollback. */
export const isForbidden = (cause: Cause.Cause<LockStoreError>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.reason === "NoPermission")

/** Whether a command that failed may have run anyway. */
export const mayHaveRun = (cause: Cause.Cause<LockStoreError>): boolean =>
  !cause.reasons.every((reason) => {
    if (reason._tag !== "Fail") return false
    const quorum = reason.error.cause
    // the server cannot do what was wanted, and was sent nothing
    if (quorum instanceof InvalidLockOptions) return true
    return quorum instanceof QuorumNotReached
      ? quorum.acquired === 0 && quorum.failures.every((failure) => notRun.has(failure.reason))
      : notRun.has(reason.error.reason)
  })

/** The reason of a failure that comes after a command had run, so that it is not taken for one that never ran. */
export const afterRun = (reason: StoreReason): StoreReason => (notRun.has(reason) ? "ConnectionLost" : reason)

/**
 * `Effect.matchCauseEffect`, for what follows every command. Its object of handlers is an instance of a class, as is all else that is
 * made for every acquisition and refers to much: of literals, V8 may conclude from the first hundred that they live long. From then on it
 * makes them in the old generation, where dead ones keep alive whatever they refer to, until the next full collection.
 */
export const matchOutcome = <A, E, B, E2, R2, C, E3, R3>(
  self: Effect.Effect<A, E>,
  onSuccess: (value: A) => Effect.Effect<B, E2, R2>,
  onFailure: (cause: Cause.Cause<E>) => Effect.Effect<C, E3, R3>
): Effect.Effect<B | C, E2 | E3, R2 | R3> => Effect.matchCauseEffect(self, new Handlers(onSuccess, onFailure))

class Handlers<S, F> {
  readonly onSuccess: S
  readonly onFailure: F

  constructor(onSuccess: S, onFailure: F) {
    this.onSuccess = onSuccess
    this.onFailure = onFailure
  }
}
