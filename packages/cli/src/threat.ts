/**
 * When the command under a lock must stop. A lock whose renewals fail is lost at its deadline; by then the command must be
 * dead, so it is told to stop well before.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Holding, LockLost } from "effect-redis-lock"

export interface Threat {
  readonly message: string
  /** Milliseconds that the command may take to stop. */
  readonly patience: number
}

const longestGraceMillis = 5000

/** What a command gets that runs without the lock already. */
const overdueGraceMillis = 1000

/**
 * How long before the end of the lease the command is told to stop: a third of the lease, as renewals begin after the
 * first third and so have the second one to succeed.
 */
export const graceOf = (lease: Duration.Duration): number => Math.min(longestGraceMillis, Duration.toMillis(lease) / 3)

/** Waits until the lock is lost, or is going to be. */
export const threatTo = (holding: Holding, graceMillis: number): Effect.Effect<Threat> =>
  Effect.match(Effect.raceFirst(runningOut(holding, graceMillis), holding.awaitLost), {
    onSuccess: (remaining) => ({
      message: `Lock "${holding.name}" could not be renewed; its lease ends in ${(remaining / 1000).toFixed(1)} s.`,
      // dead before the end, not at it
      patience: Math.max(0, remaining - graceMillis / 10)
    }),
    onFailure: (lost) => ({
      message: lost.message,
      patience: lost.reason === "NotOwner" ? Math.min(overdueGraceMillis, graceMillis) : 0
    })
  })

/** Waits until no more than the grace remains: how much that is. */
const runningOut = Effect.fnUntraced(function* (
  holding: Holding,
  graceMillis: number
): Effect.fn.Return<number, LockLost> {
  while (true) {
    yield* holding.ensureHeld
    const remaining = Duration.toMillis(yield* holding.remaining)
    if (remaining <= graceMillis) return remaining
    yield* Effect.sleep(remaining - graceMillis)
  }
})
