/**
 * Decides when the command under a lock must stop. A lock whose renewals fail is lost at its deadline. The command must be
 * dead by then, so it is stopped well before.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { LockLost, LockStoreError } from "effect-redis-lock"
import type { Hold } from "./hold.ts"

/** The lock is lost, or about to be. */
export interface LossWarning {
  readonly message: string
  /** How long the command may take to stop, milliseconds. */
  readonly graceMillis: number
}

const longestGraceMillis = 5000

/** The grace of a command whose lock is lost already. */
const overdueGraceMillis = 1000

/**
 * How long before the end of the lease the command gets SIGTERM, milliseconds: a third of the lease, at most five seconds.
 * Renewals begin after the first third, and have the second one to succeed.
 */
export const graceOf = (lease: Duration.Duration): number => Math.min(longestGraceMillis, Duration.toMillis(lease) / 3)

/** Waits until the lock is lost, or is about to be. */
export const awaitLossWarning = ({ holding, title }: Hold, graceMillis: number): Effect.Effect<LossWarning> =>
  Effect.match(Effect.raceFirst(runningOut(holding, graceMillis), holding.awaitLost), {
    onSuccess: ({ failure, graceMillis, remaining }) => ({
      message: `${title} ${whyNotRenewed(failure)}; its lease ends in ${(remaining / 1000).toFixed(1)} s.`,
      // dead before the end, not at it
      graceMillis: Math.max(0, remaining - graceMillis / 10)
    }),
    onFailure: (lost) => ({
      message: lost.reason === "HeldTooLong" ? `${title} was held for its --max-hold.` : lost.message,
      graceMillis: graceAfter(lost, graceMillis)
    })
  })

const whyNotRenewed = (failure: Option.Option<LockStoreError>): string =>
  Option.isSome(failure)
    ? "could not be renewed, as Redis does not answer or refuses"
    : "was not renewed in time, as this process was stopped or the machine was busy"

const graceAfter = ({ reason }: LockLost, graceMillis: number): number => {
  // its lease still runs
  if (reason === "HeldTooLong") return graceMillis
  return reason === "NotOwner" ? Math.min(overdueGraceMillis, graceMillis) : 0
}

/** The lease is about to end. */
interface RunningOut {
  readonly remaining: number
  /** How long before its end that is. */
  readonly graceMillis: number
  /** Why it was not renewed. */
  readonly failure: Option.Option<LockStoreError>
}

/**
 * Waits until at most the grace remains, or a third of the longest lease that was seen if that is less: a lock that was handed over has a
 * short lease until the reply to its extension is there. Times are in milliseconds.
 */
const runningOut = Effect.fnUntraced(function* (
  holding: Hold["holding"],
  graceMillis: number
): Effect.fn.Return<RunningOut, LockLost> {
  let longest = 0
  while (true) {
    yield* holding.ensureHeld
    const remaining = Duration.toMillis(yield* holding.remaining)
    longest = Math.max(longest, remaining)
    const grace = Math.min(graceMillis, longest / 3)
    if (remaining <= grace) return { remaining, graceMillis: grace, failure: yield* holding.renewalFailure }
    yield* Effect.sleep(remaining - grace)
  }
})
