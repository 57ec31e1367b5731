/**
 * How redis-lock ends: its exit codes, and the failure that carries one.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { LockStoreError, RedisDriver } from "effect-redis-lock"

/** From `sysexits.h` if it has a code; codes about the command are those of shells. */
export const ExitCode = {
  /** A bug of redis-lock itself. */
  defect: 1,
  /** EX_USAGE */
  usage: 64,
  /** EX_UNAVAILABLE */
  unreachable: 69,
  /** EX_SOFTWARE */
  lockLost: 70,
  /** EX_IOERR */
  notWritten: 74,
  /** EX_TEMPFAIL */
  waitRanOut: 75,
  notExecutable: 126,
  notFound: 127,
  /** Plus the signal's number. */
  killed: 128
} as const

/** Ends redis-lock with a code. The message goes to stderr; it is empty if there is nothing to add to the command's output. */
export class ExitWith extends Data.TaggedError("ExitWith")<{
  readonly code: number
  readonly message: string
}> {}

/** Redis could not be reached, or refused. */
export const unreachable = (error: LockStoreError | RedisDriver.RedisDriverError): Effect.Effect<never, ExitWith> =>
  Effect.fail(
    new ExitWith({
      code: ExitCode.unreachable,
      message: error._tag === "RedisDriverError" ? `cannot connect to Redis: ${error.message}` : error.message
    })
  )
