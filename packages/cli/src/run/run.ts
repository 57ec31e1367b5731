/**
 * `redis-lock run`: a command under a lock.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { Lock, type LockLost, type LockTimeout } from "effect-redis-lock"
import { hostname } from "node:os"
import { basename } from "node:path"
import * as CommandGroup from "./CommandGroup.ts"
import { format } from "../duration.ts"
import { ExitCode, ExitWith, type Failure } from "../exit.ts"
import { type Hold, type HoldOptions, wanted, type Wanted } from "./hold.ts"
import { awaitLossWarning, graceOf, type LossWarning } from "./lossWarning.ts"
import { heldBy } from "../names/nameState.ts"
import { locksIn, type Target } from "../redis.ts"
import { said, say } from "../say.ts"
import * as Signals from "./Signals.ts"
import { quoted } from "../visible.ts"

export interface RunOptions extends HoldOptions, Target {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly wait: Option.Option<Duration.Duration>
  readonly lease: Duration.Duration
  readonly timeout: Option.Option<Duration.Duration>
  readonly conflictExitCode: Option.Option<number>
  readonly verbose: boolean
  readonly hideRedisUrl: boolean
}

/** Succeeds when the command has exited with 0 and the lock was held until then; anything else is a failure. */
export const run = (options: RunOptions): Effect.Effect<void, ExitWith | Failure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const signals = yield* Signals.listen
      if (process.pid === 1) yield* say(noInit)
      const hold = yield* Effect.raceFirst(acquire(options), Effect.flatMap(Queue.take(signals), giveUp))
      const { holding, variables } = hold
      // this process may have been stopped since
      yield* Effect.catchTag(holding.ensureHeld, "LockLost", (error) =>
        Effect.andThen(Effect.ignore(holding.release), lost(error))
      )
      const group = yield* CommandGroup.start(options.command, options.args, {
        ...variables,
        ...(options.hideRedisUrl ? noUrls : {})
      })
      // the command decides what a signal means; we wait for it to end either way
      yield* Queue.take(signals).pipe(Effect.flatMap(group.signal), Effect.forever, Effect.forkScoped)
      const outcome = yield* Effect.raceFirst(
        awaitEnd(group, options.timeout),
        awaitLossWarning(hold, graceOf(options.lease))
      )
      if (typeof outcome !== "number") return yield* stop(group, hold, outcome)
      yield* release(holding)
      if (options.verbose) yield* say(`released ${quoted(holding.name)}${staysTaken(options)}`)
      if (outcome !== 0) return yield* new ExitWith({ code: outcome, message: "" })
    })
  )

/** Node.js can wait only for processes that it has started itself. */
const noInit =
  "It is the first process of this container (PID 1) and does not reap orphans of the command, which remain as zombies. Give the container an init: docker run --init, or tini."

const noUrls = { REDIS_URL: undefined, REDIS_QUORUM: undefined }

const staysTaken = ({ atLeast }: RunOptions): string =>
  Option.match(atLeast, {
    onNone: () => "",
    onSome: (duration) => `, which stays held until ${format(duration)} after it was acquired`
  })

/** Host, pid and program, as any label: the program is what we run, without arguments, which may contain secrets. No longer than a label may be. */
const labelOf = (command: string): string => `${hostname()}/${process.pid}/${basename(command)}`.slice(0, 256)

const acquire = (options: RunOptions): Effect.Effect<Hold, ExitWith | Failure, Scope.Scope> =>
  Layer.build(locksIn(options, options.lease, labelOf(options.command))).pipe(
    Effect.flatMap((locks) => {
      const what = wanted(options)
      return Effect.provideContext(
        options.verbose ? acquireVerbosely(what, options.wait) : what.acquire(Option.getOrUndefined(options.wait)),
        locks
      )
    }),
    Effect.catchTag("LockTimeout", (timeout) => ranOut(timeout, options))
  )

const ranOut = ({ message }: LockTimeout, { conflictExitCode }: RunOptions) =>
  new ExitWith({ code: Option.getOrElse(conflictExitCode, () => ExitCode.waitRanOut), message })

/** The same, and says for whom it waits, and how long it took. */
const acquireVerbosely = (what: Wanted, wait: Option.Option<Duration.Duration>) =>
  Effect.gen(function* () {
    const [took, hold] = yield* Effect.timed(acquireOrTell(what, wait))
    yield* say(`acquired ${quoted(hold.holding.name)} after ${format(took)}, ${hold.grant}`)
    // before anything that the command writes
    yield* Effect.timeoutOption(said, "1 second")
    return hold
  })

const acquireOrTell = (what: Wanted, wait: Option.Option<Duration.Duration>) =>
  Effect.gen(function* () {
    const waitTime = Option.getOrUndefined(wait)
    if (waitTime !== undefined && Duration.isZero(waitTime)) return yield* what.acquire(waitTime)
    // whether Redis cannot be reached for good is for the wait to find out
    const [took, now] = yield* Effect.timed(
      Effect.catchTag(what.tryAcquire, "LockStoreError", () => Effect.succeedNone)
    )
    if (Option.isSome(now)) return now.value
    yield* Effect.forEach(what.names, (name) => tellWaiting(name, what.names.length > 1))
    return yield* what.acquire(waitTime && Duration.max(Duration.zero, Duration.subtract(waitTime, took)))
  })

const tellWaiting = (name: string, isOneOfSeveral: boolean) =>
  Lock.inspect(name).pipe(
    Effect.flatMap((state) => {
      // another one is taken
      if (state.kind === "none" && isOneOfSeveral) return Effect.void
      const held = heldBy(state) ?? (state.kind === "other" ? "something that is no lock has this name" : undefined)
      return say(`waiting for ${quoted(name)}${held === undefined ? "" : `: ${held}`}`)
    }),
    Effect.catchTag("LockStoreError", ({ message }) => say(`waiting for ${quoted(name)}: ${message}`))
  )

const giveUp = (signal: NodeJS.Signals): Effect.Effect<never, ExitWith> =>
  Effect.fail(new ExitWith({ code: CommandGroup.codeOf(signal), message: `${signal}: gave up waiting for the lock` }))

/** How long a command that ran too long may take to stop. */
const timeoutGrace = "5 seconds"

/** The command's exit code, or that of timeout(1) if it was still running when its time was over. */
const awaitEnd = (group: CommandGroup.CommandGroup, timeout: Option.Option<Duration.Duration>): Effect.Effect<number> =>
  Option.match(timeout, {
    onNone: () => group.exitCode,
    onSome: (duration) =>
      Effect.flatMap(Effect.timeoutOption(group.exitCode, duration), (code) =>
        Option.isSome(code) ? Effect.succeed(code.value) : stopLate(group, duration)
      )
  })

const stopLate = Effect.fnUntraced(function* (group: CommandGroup.CommandGroup, timeout: Duration.Duration) {
  yield* say(`The command has run for ${format(timeout)}, its --timeout. Stopping it.`)
  yield* end(group, timeoutGrace)
  return ExitCode.timedOut
})

/** Because the lock is lost or about to be. */
const stop = Effect.fnUntraced(function* (
  group: CommandGroup.CommandGroup,
  hold: Hold,
  { graceMillis, message }: LossWarning
) {
  yield* say(`${message} Stopping the command.`)
  yield* end(group, graceMillis)
  yield* Effect.ignore(hold.holding.release)
  return yield* new ExitWith({ code: ExitCode.lockLost, message: "" })
})

/** Ends the whole group, by force if it takes longer than the grace. */
const end = Effect.fnUntraced(function* (group: CommandGroup.CommandGroup, grace: Duration.Input) {
  yield* group.signal("SIGTERM")
  // a stopped process handles no signal until it goes on
  yield* group.signal("SIGCONT")
  yield* Effect.timeoutOrElse(group.gone, { duration: grace, orElse: () => group.signal("SIGKILL") })
  yield* group.exitCode
})

/** The work is done, so a release that cannot be confirmed only deserves a warning: the lock frees itself. */
const release = (holding: Hold["holding"]): Effect.Effect<void, ExitWith> =>
  Effect.catchTags(holding.release, {
    LockStoreError: ({ message }) => say(message),
    LockLost: lost
  })

const lost = ({ message }: LockLost) => new ExitWith({ code: ExitCode.lockLost, message })
