/**
 * What follows from a command that has failed: whether it may have run, whether a waiter or a release tries again, and what there is under
 * the name if it is something else.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { type LockLost, LockStoreError, QuorumNotReached } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { consequences } from "../report/storeReasons.ts"
import type { StoreCommand } from "./operations/StoreOperation.ts"
import * as lock from "./operations/lock.ts"

/** Whether the Redis user lacks a permission: that is reported once, and not again for the rollback. */
export const isForbidden = (cause: Cause.Cause<LockStoreError>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.reason === "NoPermission")

/** Whether a command that failed may have run anyway. */
export const mayHaveRun = (cause: Cause.Cause<LockStoreError>): boolean =>
  !cause.reasons.every((reason) => {
    if (reason._tag !== "Fail" || reason.error.isOutcomeUnknown) return false
    const quorum = reason.error.cause
    return quorum instanceof QuorumNotReached
      ? quorum.acquired === 0 && quorum.failures.every(({ reason }) => consequences[reason].ran === "no")
      : consequences[reason.error.reason].ran === "no"
  })

/** What went wrong after the work had succeeded. A failure of the store says then that the work is done, so that nobody repeats it. */
export const afterWork = (problem: LockLost | LockStoreError): LockLost | LockStoreError => {
  if (problem._tag === "LockLost") return problem
  const { cause, lock, mayHaveRun, operation, reason } = problem
  return new LockStoreError({ operation, lock, reason, mayHaveRun, workDone: true, cause })
}

/** A grant whose lease was over before it was known. */
export class GrantedTooLate extends Error {
  /** Whether the lease is shorter than a slow round trip, so that another request would end the same way. */
  readonly isHopeless: boolean

  constructor(tookMillis: number, leaseMillis: number) {
    super(`the lock was granted after ${Math.round(tookMillis)} ms, too late for a lease of ${leaseMillis} ms`)
    this.isHopeless = leaseMillis < shortestLeaseMillis
  }
}

const shortestLeaseMillis = 1000

/**
 * The failure of the store after which a waiter retries; undefined if a retry would not help. A restart, a failover, a lost connection, a
 * server that loads its data are as if somebody held the lock: they cost time, and nothing else.
 */
export const transientFailure = (cause: Cause.Cause<unknown>): LockStoreError | undefined =>
  failureThat((error): error is LockStoreError => error instanceof LockStoreError && isRetryable(error), cause)

/** The first failure, if all are such. */
export const failureThat = <F>(isSuch: (error: unknown) => error is F, cause: Cause.Cause<unknown>): F | undefined => {
  let first: F | undefined
  for (const reason of cause.reasons) {
    // of several requests sent together, the others are interrupted
    if (reason._tag === "Interrupt") continue
    if (reason._tag !== "Fail" || !isSuch(reason.error)) return undefined
    first ??= reason.error
  }
  return first
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
export const isFinal = ({ reason }: LockStoreError): boolean => consequences[reason].again === "never"

/** Whether a command failed in a way in which it always will. */
export const isRefused = (cause: Cause.Cause<LockStoreError>): boolean =>
  failureThat((error): error is LockStoreError => error instanceof LockStoreError && isFinal(error), cause) !==
  undefined

const foundText: Record<string, string> = {
  "read-write lock": "a ReadWriteLock",
  hash: "a lock of another kind, or some other hash",
  string: "a Semaphore, a PermitSemaphore, a CountDownLatch, or some other string",
  list: "a list",
  set: "a set",
  zset: "a sorted set",
  stream: "a stream"
}

/** What the scripts of semaphores and latches have found by themselves. */
const counterText = ({ cause }: LockStoreError): string | undefined => {
  const text = cause instanceof Error ? cause.message : ""
  return text.includes("a permit semaphore")
    ? "a PermitSemaphore"
    : text.includes("not a counter")
      ? "a string that is no number"
      : undefined
}

/** Fails with the cause; a wrong type with what was expected and what was found, under the first of the names where something else lies. */
export const describeWrongType = (
  client: LockClient,
  asked: ReadonlyArray<{ readonly expected: string; readonly key: string }>,
  cause: Cause.Cause<LockStoreError>
): Effect.Effect<never, LockStoreError> => {
  const failure = cause.reasons.find((reason) => reason._tag === "Fail")
  if (failure === undefined || failure.error.reason !== "WrongType") return Effect.failCause(cause)
  const { error } = failure
  return Effect.matchEffect(
    Effect.forEach(asked, ({ key }) => client.run(lock.found(key))),
    {
      onFailure: () => Effect.failCause(cause),
      onSuccess: (types) => {
        // of several locks, the others are hashes
        const i = types.findIndex((type) => type !== "none" && (asked.length === 1 || type !== "hash"))
        // nothing is wrong with the names themselves: it is another key of a lock, or what was there is gone
        if (i === -1) return Effect.failCause(cause)
        const { expected, key } = asked[i]!
        return Effect.fail(
          new LockStoreError({
            operation: error.operation,
            lock: key,
            reason: "WrongType",
            expected,
            found: counterText(error) ?? foundText[types[i]!] ?? types[i]!,
            ...(error.mayHaveRun === true ? { mayHaveRun: true } : undefined),
            cause: error.cause
          })
        )
      }
    }
  )
}

/** Runs one operation; if the name holds something other than a synchronizer of this title, says what. */
export const runOrDescribe = <A>(
  client: LockClient,
  title: string,
  command: StoreCommand<A>
): Effect.Effect<A, LockStoreError> =>
  Effect.catchCause(client.run(command), (cause) =>
    describeWrongType(client, [{ expected: title, key: command.keys[0]! }], cause)
  )

/** Between the tries of a release: each pause is twice the one before, up to the longest. */
export const firstPauseMillis = 50
export const longestPauseMillis = 1000

/**
 * Sends a release until it succeeds, after pauses that grow from 50 milliseconds to a second. Its last failure is the result
 * where it cannot succeed later, or where what it releases is over, on the monotonic clock, before another attempt.
 */
export const retryRelease = <A>(
  client: LockClient,
  send: Effect.Effect<A, LockStoreError>,
  released: { readonly overAt: number },
  pauseMillis = firstPauseMillis
): Effect.Effect<A, LockStoreError> =>
  Effect.catch(send, (failure) => retryAfter(client, failure, send, released, pauseMillis))

/** {@link retryRelease} for a release that was sent before, and has failed. */
export const retryAfter = <A>(
  client: LockClient,
  failure: LockStoreError,
  send: Effect.Effect<A, LockStoreError>,
  released: { readonly overAt: number },
  pauseMillis = firstPauseMillis
): Effect.Effect<A, LockStoreError> => {
  if (isFinal(failure) || client.now() + pauseMillis >= released.overAt) return Effect.fail(failure)
  const again = retryRelease(client, send, released, Math.min(pauseMillis * 2, longestPauseMillis))
  return Effect.andThen(Effect.sleep(pauseMillis), again)
}
