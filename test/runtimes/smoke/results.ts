/**
 * What a program of this folder tells: a line of JSON for each check.
 */
import { Cause, Effect, Exit } from "effect"

export interface CheckResult {
  readonly check: string
  /** Why it failed. */
  readonly error?: string
}

/** Where a program runs its checks. */
export interface Servers {
  readonly url: string
  readonly cluster: string
  readonly sentinel: string
  /** None where the server does not speak it. */
  readonly tls?: string
  /** Of all names, so that nobody else's locks are in the way. */
  readonly prefix: string
}

/** Long enough for a busy machine. */
const patience = "60 seconds"

/** Runs checks at the same time and tells how each ended. */
export const runChecks = (checks: Readonly<Record<string, Effect.Effect<void, unknown>>>): Effect.Effect<void> =>
  Effect.forEach(
    Object.entries(checks),
    Effect.fnUntraced(function* ([check, effect]) {
      const exit = yield* Effect.exit(Effect.timeout(effect, patience))
      const result: CheckResult = Exit.isSuccess(exit) ? { check } : { check, error: Cause.pretty(exit.cause) }
      console.log(JSON.stringify(result))
    }),
    { concurrency: "unbounded", discard: true }
  )
