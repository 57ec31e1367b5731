/**
 * A release that Redis has not confirmed is sent again: within the release timeout while its caller waits, then in the background
 * until it is confirmed, or until there is nothing left to release.
 */
import * as Effect from "effect/Effect"
import { LockStoreError, QuorumNotReached } from "../../LockError.ts"
import { retryAfter, retryRelease } from "../store/retryRelease.ts"
import type { HoldingClient } from "./HoldingClient.ts"

/** A release that does nothing the second time. */
export interface RepeatedRelease {
  readonly client: HoldingClient
  readonly send: Effect.Effect<number, LockStoreError>
  /** When there is nothing left to release, on the monotonic clock. */
  readonly over: number
  /** Reports that it was not confirmed by then. */
  readonly warn: (failure: LockStoreError) => Effect.Effect<void>
}

/**
 * The reply to a repeated release. If an earlier attempt may have run, the reply "not yours" does not mean that the lock was lost.
 */
export interface ReleaseReply {
  readonly reply: number
  readonly mayHaveRunBefore: boolean
}

/** Sends a release and waits at most this long for the reply. Without one, it may have run anyway. */
export const sendWithin = <A>(
  client: HoldingClient,
  send: Effect.Effect<A, LockStoreError>,
  millis: number,
  lock: string
): Effect.Effect<A, LockStoreError> =>
  // usually the command itself times out earlier, and no timer is needed here
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
 * Repeats a release that has failed until the time `until`. Then it continues in the background, and the result is the last
 * failure; `outlook` tells the user what to expect.
 */
export const repeatRelease = (
  release: RepeatedRelease,
  failure: LockStoreError,
  until: number,
  lock: string,
  outlook: string
): Effect.Effect<ReleaseReply, LockStoreError> => {
  const { client } = release
  let mayHaveRunBefore = mayHaveReleased(failure)
  const send = Effect.tapError(
    Effect.suspend(() => sendWithin(client, release.send, until - client.now(), lock)),
    (failure) => Effect.sync(() => void (mayHaveRunBefore ||= mayHaveReleased(failure)))
  )
  return Effect.matchEffect(
    retryAfter(failure, send, (pause) => client.now() + pause < until),
    {
      onSuccess: (reply) => Effect.succeed({ reply, mayHaveRunBefore }),
      onFailure: ({ cause, reason }) => {
        client.background(releaseUntilConfirmed(release))
        return Effect.fail(new LockStoreError({ operation: `release (${outlook})`, lock, reason, cause }))
      }
    }
  )
}

/** Some members of a quorum may have run it even if too few have answered. */
const mayHaveReleased = ({ cause, isOutcomeUnknown }: LockStoreError): boolean =>
  isOutcomeUnknown || cause instanceof QuorumNotReached

/**
 * Sends a release until Redis confirms it, or there is nothing left to release. The result is the reply, if there was one. With
 * `isForbidden`, the missing permission has been reported already, and is not reported again.
 */
export const releaseUntilConfirmed = (
  { client, over, send, warn }: RepeatedRelease,
  isForbidden = false
): Effect.Effect<number | undefined> =>
  Effect.catch(
    retryRelease(send, (pause) => client.now() + pause < over),
    (failure) =>
      isForbidden && failure.reason === "NoPermission" ? Effect.undefined : Effect.as(warn(failure), undefined)
  )
