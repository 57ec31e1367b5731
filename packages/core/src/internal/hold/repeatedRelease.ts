/**
 * A release that Redis has not confirmed is sent again: within the release timeout while its caller waits, then in the background
 * until it is confirmed, or until there is nothing left to release.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { LockStoreError, QuorumNotReached } from "../../LockError.ts"
import { isFinal } from "../store/transient.ts"
import type { HoldingClient } from "./HoldingClient.ts"

const firstPauseMillis = 50
const longestPauseMillis = 1000

/** A release that does nothing the second time. */
export interface RepeatedRelease {
  readonly client: HoldingClient
  readonly send: Effect.Effect<number, LockStoreError>
  /** When there is nothing left to release, on the monotonic clock. */
  readonly over: number
  /** Reports that it was not confirmed by then. */
  readonly warn: (failure: LockStoreError) => Effect.Effect<void>
}

/** The reply to a repeated release; "not yours" means nothing where an earlier one may have been run. */
export interface ReleaseReply {
  readonly reply: number
  readonly mayHaveRunBefore: boolean
}

/** Sends a release and waits at most this long for the reply. Without one, it may have been run all the same. */
export const sendWithin = <A>(
  client: HoldingClient,
  send: Effect.Effect<A, LockStoreError>,
  millis: number,
  lock: string
): Effect.Effect<A, LockStoreError> =>
  // a command gives up by itself: mostly earlier, and then no timer is needed
  client.store.commandTimeoutMillis <= millis
    ? send
    : Effect.timeoutOrElse(Effect.interruptible(send), {
        duration: millis,
        orElse: () => {
          const cause = new Error(`no reply within ${Math.ceil(millis)} ms`)
          return Effect.fail(new LockStoreError({ operation: "release", lock, reason: "TimedOut", cause }))
        }
      })

/**
 * Repeats a release that has failed until the time `until`. Then it goes on in the background, and the result is the last
 * failure; `outlook` tells the user what to expect.
 */
export const repeatRelease = Effect.fnUntraced(function* (
  release: RepeatedRelease,
  failure: LockStoreError,
  until: number,
  lock: string,
  outlook: string
): Effect.fn.Return<ReleaseReply, LockStoreError> {
  const { client } = release
  let mayHaveRunBefore = mayHaveReleased(failure)
  for (let pause = firstPauseMillis; !isFinal(failure) && client.now() + pause < until; pause *= 2) {
    yield* Effect.sleep(Math.min(pause, longestPauseMillis))
    const result = yield* Effect.result(sendWithin(client, release.send, until - client.now(), lock))
    if (Result.isSuccess(result)) return { reply: result.success, mayHaveRunBefore }
    failure = result.failure
    mayHaveRunBefore ||= mayHaveReleased(failure)
  }
  client.background(releaseUntilConfirmed(release))
  const { cause, reason } = failure
  return yield* new LockStoreError({ operation: `release (${outlook})`, lock, reason, cause })
})

/** Too few servers of a quorum may have answered, and yet some of them have run it. */
const mayHaveReleased = ({ cause, isOutcomeUnknown }: LockStoreError): boolean =>
  isOutcomeUnknown || cause instanceof QuorumNotReached

/**
 * Sends a release until Redis confirms it, or there is nothing left to release. The result is the reply, if there was one. With
 * `isForbidden` the caller knows already that a right is missing, and is not told again.
 */
export const releaseUntilConfirmed = (
  { client, over, send, warn }: RepeatedRelease,
  isForbidden = false
): Effect.Effect<number | undefined> =>
  Effect.gen(function* () {
    for (let pause = firstPauseMillis; ; pause = Math.min(pause * 2, longestPauseMillis)) {
      const result = yield* Effect.result(send)
      if (Result.isSuccess(result)) return result.success
      if (isForbidden && result.failure.reason === "NoPermission") return undefined
      if (isFinal(result.failure) || client.now() + pause >= over) {
        yield* warn(result.failure)
        return undefined
      }
      yield* Effect.sleep(pause)
    }
  })
