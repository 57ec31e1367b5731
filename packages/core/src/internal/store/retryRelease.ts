/**
 * Sends a release again that has failed, after pauses that grow from 50 milliseconds to a second. Its last failure is the result
 * where it cannot succeed later, or where another attempt is not worth its pause.
 */
import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import { isFinal } from "./transient.ts"

const firstPauseMillis = 50
const longestPauseMillis = 1000

type IsWorthPause = (pauseMillis: number) => boolean

/** Sends a release until it succeeds. */
export const retryRelease = <A>(
  send: Effect.Effect<A, LockStoreError>,
  isWorthPause: IsWorthPause
): Effect.Effect<A, LockStoreError> => Effect.catch(send, (failure) => retryAfter(failure, send, isWorthPause))

/** {@link retryRelease} for a release that was sent before, and has failed. */
export const retryAfter = <A>(
  failure: LockStoreError,
  send: Effect.Effect<A, LockStoreError>,
  isWorthPause: IsWorthPause,
  pauseMillis = firstPauseMillis
): Effect.Effect<A, LockStoreError> => {
  if (isFinal(failure) || !isWorthPause(pauseMillis)) return Effect.fail(failure)
  const nextPauseMillis = Math.min(pauseMillis * 2, longestPauseMillis)
  const again = Effect.catch(send, (failure) => retryAfter(failure, send, isWorthPause, nextPauseMillis))
  return Effect.andThen(Effect.sleep(pauseMillis), again)
}
