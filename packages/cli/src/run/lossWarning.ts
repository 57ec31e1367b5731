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
export const awaitLossWarning = (hold: Hold, graceMillis: number): Effect.Effect<LossWarning> =>
  Effect.match(Effect.raceFirst(runningOut(hold, graceMillis), hold.awaitLost), {
    onSuccess: ({ failure, remaining }) => ({
      message: `${hold.title} ${whyNotRenewed(failure)}; its lease ends in ${(remaining / 1000).toFixed(1)} s.`,
      // dead before the end, not at it
      graceMillis: Math.max(0, remaining - graceMillis / 10)
    }),
    onFailure: (lost) => ({
      message: lost.reason === "HeldTooLong" ? `${hold.title} was held for its --max-hold.` : lost.message,
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

/** How long the reply may take before that. */
const handedOverMillis = 500

/** Waits until at most the grace remains, in milliseconds, and succeeds with what remains and why it was not renewed. */
const runningOut = Effect.fnUntraced(function* (
  hold: Hold,
  graceMillis: number
): Effect.fn.Return<{ readonly remaining: number; readonly failure: Option.Option<LockStoreError> }, LockLost> {
  // a lock that was handed over has a short lease until the reply to its extension is there, a moment later
  yield* Effect.sleep(Math.min(handedOverMillis, Duration.toMillis(yield* hold.remaining) / 4))
  while (true) {
    yield* hold.ensureHeld
    const remaining = Duration.toMillis(yield* hold.remaining)
    if (remaining <= graceMillis) return { remaining, failure: yield* hold.renewalFailure }
    yield* Effect.sleep(remaining - graceMillis)
  }
})
