/**
 * Members that are behind: those that are still to be told of releases.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../../LockError.ts"
import { firstPauseMillis, isFinal, longestPauseMillis } from "../failures.ts"
import { keepingPlace } from "../operations/readWriteLock.ts"
import type { StoreCommand } from "../operations/StoreOperation.ts"
import { commandAt, type Member } from "./QuorumCall.ts"

/** A limit to the memory that they take, and to what is sent to a member that has come back. */
const most = 5000

/** How many of these are kept when there are as many: those of locks that the member had, and of these the ones that would free themselves last. */
const mostKept = 4000

/** How many are under way at once: whatever else is sent to the member meanwhile is behind these alone. */
const mostAtOnce = 100

interface UntoldRelease {
  readonly command: StoreCommand<unknown>
  /** When to send it, on the monotonic clock: before, what it is to release may be yet to come. */
  readonly from: number
  /** When nothing is left to release. */
  readonly until: number
  /** Whether the member may have granted nothing: it has not answered the request. */
  readonly mayBeNothing: boolean
}

/**
 * Tells one member of releases later. While it does not answer, one of them is sent at a time, and soon once a second only, however many
 * there are. When it has answered, the others follow.
 */
export const tellingLater = (
  member: Member,
  now: () => number,
  fork: (effect: Effect.Effect<void>) => void
): ((release: UntoldRelease) => void) => {
  let untold: Array<UntoldRelease> = []
  let isTelling = false

  /** Sends up to `atOnce` of them at a time until none is left. */
  const tell = (atOnce: number, pauseMillis: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      const at = now()
      const due: Array<UntoldRelease> = []
      const others: Array<UntoldRelease> = []
      for (const release of untold) {
        if (release.until <= at) continue
        if (release.from <= at && due.length < atOnce) due.push(release)
        else others.push(release)
      }
      untold = others
      isTelling = due.length + others.length > 0
      if (!isTelling) return Effect.void
      return Effect.flatMap(Effect.forEach(due, send, { concurrency: "unbounded" }), (told) =>
        told.includes(true) && !told.includes(false)
          ? tell(mostAtOnce, firstPauseMillis)
          : Effect.delay(tell(1, Math.min(2 * pauseMillis, longestPauseMillis)), pauseMillis)
      )
    })

  /** Whether that was all for this release. One that has failed comes behind the others: it may have failed for its own reasons. */
  const send = (release: UntoldRelease): Effect.Effect<boolean> =>
    Effect.matchCause(
      // a member that has joined meanwhile has another client
      Effect.suspend(() => member.client.run(commandAt(member, release.command))),
      {
        onSuccess: () => true,
        onFailure: (cause) => {
          const failure = Cause.squash(cause)
          const isOver = failure instanceof LockStoreError && isFinal(failure)
          if (!isOver) untold.push(release)
          return isOver
        }
      }
    )

  return (release) => {
    if (untold.length >= most) {
      const byWorth = (a: UntoldRelease, b: UntoldRelease) =>
        Number(a.mayBeNothing) - Number(b.mayBeNothing) || b.until - a.until
      untold = untold.toSorted(byWorth).slice(0, mostKept)
    }
    untold.push({ ...release, command: keepingPlace(release.command) })
    if (isTelling) return
    isTelling = true
    fork(tell(1, firstPauseMillis))
  }
}
