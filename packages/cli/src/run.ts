/**
 * `redis-lock run`: a command under a lock.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { type Holding, Lock } from "effect-redis-lock"
import * as CommandGroup from "./CommandGroup.ts"
import { ExitCode, ExitWith, unreachable } from "./exit.ts"
import { locksIn, type Urls } from "./redis.ts"
import { say } from "./say.ts"
import * as Signals from "./Signals.ts"
import { awaitLossWarning, graceOf, type LossWarning } from "./lossWarning.ts"

export interface RunOptions {
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly wait: Option.Option<Duration.Duration>
  readonly lease: Duration.Duration
  readonly redis: Urls
}

/** Succeeds when the command has exited with 0 and the lock was held until then; anything else is a failure. */
export const run = (options: RunOptions): Effect.Effect<void, ExitWith> =>
  Effect.scoped(
    Effect.gen(function* () {
      const signals = yield* Signals.listen
      const holding = yield* Effect.raceFirst(acquire(options), Effect.flatMap(Queue.take(signals), giveUp))
      const group = yield* CommandGroup.start(options.command, options.args, {
        REDIS_LOCK_NAME: holding.name,
        REDIS_LOCK_TOKEN: String(holding.token),
        REDIS_LOCK_OWNER: holding.owner
      })
      // the command decides what a signal means; we wait for it to end either way
      yield* Queue.take(signals).pipe(Effect.flatMap(group.signal), Effect.forever, Effect.forkScoped)
      const outcome = yield* Effect.raceFirst(group.exitCode, awaitLossWarning(holding, graceOf(options.lease)))
      if (typeof outcome !== "number") return yield* stop(group, holding, outcome)
      yield* release(holding)
      if (outcome !== 0) return yield* new ExitWith({ code: outcome, message: "" })
    })
  )

const acquire = ({ lease, name, redis, wait }: RunOptions): Effect.Effect<Holding, ExitWith, Scope.Scope> =>
  Layer.build(locksIn(redis, lease)).pipe(
    Effect.flatMap((locks) =>
      Effect.provideContext(Lock.scoped(name, { waitTime: Option.getOrUndefined(wait) }), locks)
    ),
    Effect.catchTags({
      LockTimeout: ({ message }) => new ExitWith({ code: ExitCode.waitRanOut, message }),
      LockStoreError: unreachable,
      RedisDriverError: unreachable,
      InvalidLockName: ({ message }) => new ExitWith({ code: ExitCode.usage, message }),
      InvalidLockOptions: ({ message }) => new ExitWith({ code: ExitCode.usage, message })
    })
  )

const giveUp = (signal: NodeJS.Signals): Effect.Effect<never, ExitWith> =>
  Effect.fail(new ExitWith({ code: CommandGroup.codeOf(signal), message: `${signal}: gave up waiting for the lock` }))

/** Ends the whole group, by force if necessary, because the lock is lost or about to be. */
const stop = Effect.fnUntraced(function* (
  group: CommandGroup.CommandGroup,
  holding: Holding,
  { graceMillis, message }: LossWarning
) {
  yield* say(`${message} Stopping the command.`)
  yield* group.signal("SIGTERM")
  yield* Effect.timeoutOrElse(group.gone, { duration: graceMillis, orElse: () => group.signal("SIGKILL") })
  yield* group.exitCode
  yield* Effect.ignore(holding.release)
  return yield* new ExitWith({ code: ExitCode.lockLost, message: "" })
})

/** The work is done, so a release that cannot be confirmed only deserves a warning: the lock frees itself. */
const release = (holding: Holding): Effect.Effect<void, ExitWith> =>
  Effect.catchTags(holding.release, {
    LockStoreError: ({ message }) => say(message),
    LockLost: ({ message }) => new ExitWith({ code: ExitCode.lockLost, message })
  })
