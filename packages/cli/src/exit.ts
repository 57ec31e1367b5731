/**
 * How redis-lock ends: its exit codes, and the failure that carries one.
 */
import * as Data from "effect/Data"
import type { CommandError, RedisDriver } from "effect-redis-lock"

/** From `sysexits.h` if it has a code; codes about the command are those of shells. */
export const ExitCode = {
  /** A bug of redis-lock itself. */
  defect: 1,
  /** `doctor` has found a problem. */
  unhealthy: 2,
  /** EX_USAGE */
  usage: 64,
  /** EX_DATAERR: what is under the name has no holder that could be freed. */
  notFreeable: 65,
  /** EX_NOINPUT: nobody holds the name, or not who was shown. */
  notHeld: 66,
  /** EX_UNAVAILABLE */
  unreachable: 69,
  /** EX_SOFTWARE */
  lockLost: 70,
  /** EX_OSERR: the server of `ui` cannot listen. */
  notListening: 71,
  /** EX_IOERR */
  notWritten: 74,
  /** EX_TEMPFAIL */
  waitRanOut: 75,
  /** EX_TEMPFAIL: more permits were held than one look lists. */
  freedSome: 75,
  /** EX_NOPERM: the answer to the question was no. */
  declined: 77,
  /** As timeout(1). */
  timedOut: 124,
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

/** As the command line counts its URLs. */
const nth = (_: string, index: string): string => `URL ${Number(index) + 1}`

/** A failure to use the locks at all: Redis cannot be reached, or refuses; or a name or an option is wrong. */
export type Failure = CommandError | RedisDriver.RedisDriverError

export const exitOf = (error: Failure): ExitWith => {
  switch (error._tag) {
    case "LockStoreError":
      return new ExitWith({ code: ExitCode.unreachable, message: error.message })
    case "RedisDriverError":
      return new ExitWith({ code: ExitCode.unreachable, message: `cannot connect to Redis: ${error.message}` })
    case "InvalidLockName":
    case "InvalidLockOptions":
      return new ExitWith({ code: ExitCode.usage, message: error.message.replaceAll(/\burls\[(\d+)\]/g, nth) })
  }
}
