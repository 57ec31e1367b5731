/**
 * Whether a command that failed may have taken effect.
 */
import type * as Cause from "effect/Cause"
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
