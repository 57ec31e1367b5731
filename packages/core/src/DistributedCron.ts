/**
 * Jobs that run on a schedule, each tick at most once across all processes, even if their clocks disagree.
 *
 * @since 0.3.0
 */
import * as Context from "effect/Context"
import * as Cron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { clientIn } from "./internal/client/boundClient.ts"
import { type CronJob, CronLoop } from "./internal/coordination/CronLoop.ts"
import { LockImpl } from "./internal/locks/LockImpl.ts"
import { type Invalid, isInvalid } from "./internal/options/invalid.ts"
import { nonReentrant } from "./internal/protocol/exclusive.ts"
import { shown } from "./internal/report/shown.ts"
import { growing } from "./internal/time/schedules.ts"
import { type InvalidLockName, InvalidLockOptions, type LockReentered } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * The time for which the running tick was scheduled, whichever process runs it and however late.
 *
 * **When to use**
 *
 * In `execute`, to know which run this is, such as the day of a report. The current time may be later.
 *
 * @category services
 * @since 0.3.0
 */
export class CurrentScheduledTime extends Context.Service<CurrentScheduledTime, DateTime.Utc>()(
  "effect-redis-lock/DistributedCron/CurrentScheduledTime"
) {}

/**
 * Options of {@link layer}.
 *
 * @category options
 * @since 0.3.0
 */
export interface DistributedCronOptions<E, R> {
  /** The name of the schedule and of the lock that its ticks hold; it follows the rules of `Lock.make`. */
  readonly name: string
  /** `Cron.parse("0 4 * * *", "Europe/Zurich")`, or a `Cron`. Time zones and daylight saving time are handled by Effect. */
  readonly cron: Cron.Cron | Result.Result<Cron.Cron, Cron.CronParseError>
  /** What runs. A failure is logged, and the tick counts as done. */
  readonly execute: Effect.Effect<unknown, E, R>
  /**
   * What to do with a tick while an earlier one is still running, in any process.
   *
   * - `"skip"`: drop it
   * - `"wait"`: run it afterwards; up to `maxCatchUp` ticks wait, older ones are dropped
   * - `"allow"`: run it at the same time, without a lock
   *
   * Default: `"skip"`.
   */
  readonly overlap?: "skip" | "wait" | "allow" | undefined
  /**
   * What to do with ticks that were missed because no process was running.
   *
   * - `"none"`: drop them
   * - `"latest"`: run the most recent one once a process is running again
   * - `"all"`: run the last `maxCatchUp` of them, oldest first
   *
   * Of the ticks that were missed because Redis was unreachable, the most recent one always runs, late; with `"all"` the last `maxCatchUp`.
   * Default: `"none"`.
   */
  readonly catchUp?: "none" | "latest" | "all" | undefined
  /** The largest number of ticks to catch up on, at least 1. Default: 100. */
  readonly maxCatchUp?: number | undefined
  /**
   * Whether another process runs a tick again if its process died or lost the lock before the tick had finished. Ticks then run at least
   * once instead of at most once. Not with `overlap: "allow"`. Default: false.
   */
  readonly retryDied?: boolean | undefined
}

/**
 * Runs a job on a schedule, each tick at most once across all processes that build this layer.
 *
 * The Redis server's clock decides when a tick is due, and the tick is recorded next to the lock of the schedule's name before it runs. So
 * a process whose clock is seconds off, or that was stopped for a while, neither repeats a tick nor runs it early. Ticks hold that lock
 * while they run, unless `overlap` is `"allow"`: losing it interrupts the run, and `Lock.currentHolding(name)` has the fencing token.
 *
 * **When to use**
 *
 * For a job that every instance of a service would otherwise start at the same time: a nightly report, an hourly clean-up.
 *
 * **When not to use**
 *
 * For something that runs all the time, use `Singleton.layer`. If every tick must run at least once, set `retryDied: true` and
 * `catchUp: "all"`: that holds as long as Redis keeps its data, but a tick may then run twice.
 *
 * **Gotchas**
 *
 * A process that dies half-way through a tick keeps the lock until its lease expires (30 seconds), and until then further ticks are
 * treated as overlapping. After Redis has lost its data, missed ticks are not caught up.
 *
 * If the server's clock is set back, or a replica takes over whose clock is behind, no tick runs until it has passed the last recorded one.
 *
 * Building it fails with `InvalidLockName`, `InvalidLockOptions` and `CronParseError`, before any command. Failures of the store are
 * logged, and it goes on when Redis answers again.
 *
 * @example
 * ```ts
 * import { Cron, DateTime, Effect } from "effect"
 * import { DistributedCron } from "effect-redis-lock"
 *
 * const NightlyReport = DistributedCron.layer({
 *   name: "nightly-report",
 *   cron: Cron.parse("0 4 * * *", "Europe/Zurich"),
 *   execute: Effect.gen(function*() {
 *     const time = yield* DistributedCron.CurrentScheduledTime
 *     yield* Effect.log(`the report of ${DateTime.formatIsoDate(time)}`)
 *   }),
 *   catchUp: "latest"
 * })
 * ```
 *
 * @category layers
 * @since 0.3.0
 */
export const layer = <E, R>(
  options: DistributedCronOptions<E, R>
): Layer.Layer<
  never,
  InvalidLockName | InvalidLockOptions | Cron.CronParseError,
  RedisLock | Exclude<R, CurrentScheduledTime>
> => Layer.effectDiscard(start(options))

const defaultMaxCatchUp = 100

/** Whether a schedule has any tick: one for the 30th of February has none. */
const everFires = (cron: Cron.Cron): boolean => {
  try {
    return Cron.next(cron).getTime() > 0
  } catch {
    return false
  }
}

const checkOptions = (cron: Cron.Cron, options: DistributedCronOptions<any, any>): InvalidLockOptions | undefined => {
  const { catchUp = "none", maxCatchUp = defaultMaxCatchUp, overlap = "skip", retryDied = false } = options
  const invalid = (option: string, problem: string) => new InvalidLockOptions({ option, problem })
  if (!["skip", "wait", "allow"].includes(overlap)) {
    return invalid("overlap", `${shown(overlap)} is none of "skip", "wait" and "allow"`)
  }
  if (!["none", "latest", "all"].includes(catchUp)) {
    return invalid("catchUp", `${shown(catchUp)} is none of "none", "latest" and "all"`)
  }
  if (!Number.isSafeInteger(maxCatchUp) || maxCatchUp < 1) {
    return invalid("maxCatchUp", `it is not a whole number from 1 (${shown(maxCatchUp)})`)
  }
  if (!everFires(cron)) return invalid("cron", "no time matches it")
  return retryDied && overlap === "allow"
    ? invalid("retryDied", `with overlap: "allow" nobody knows whether a tick's process has died`)
    : undefined
}

const start = <E, R>(
  options: DistributedCronOptions<E, R>
): Effect.Effect<void, Invalid | Cron.CronParseError, RedisLock | Exclude<R, CurrentScheduledTime> | Scope.Scope> =>
  Effect.gen(function* () {
    const { execute, name } = options
    const cron = Cron.isCron(options.cron) ? options.cron : yield* Effect.fromResult(options.cron)
    const client = clientIn(yield* Effect.context<RedisLock>())
    const lock = new LockImpl<unknown, LockReentered>(name, nonReentrant, undefined, client)
    const keys = lock.invalid ?? lock.keys(client)
    if (isInvalid(keys)) return yield* Effect.fail(keys)
    const invalid = checkOptions(cron, options)
    if (invalid !== undefined) return yield* Effect.fail(invalid)

    const job: CronJob<Exclude<R, CurrentScheduledTime>> = {
      cron,
      overlap: options.overlap ?? "skip",
      catchUp: options.catchUp ?? "none",
      maxCatchUp: options.maxCatchUp ?? defaultMaxCatchUp,
      retryDied: options.retryDied ?? false,
      execute: (tick) => {
        const time = DateTime.makeUnsafe(tick)
        return Effect.provideService(execute, CurrentScheduledTime, time).pipe(
          // not reached where the tick is interrupted from outside: by a loss, or as the layer closes
          Effect.catchCause((cause) => Effect.logError("A tick of a schedule has failed.", cause)),
          Effect.annotateLogs({ cron: name, scheduledTime: DateTime.formatIso(time) }),
          Effect.asVoid
        )
      }
    }
    const loop = new CronLoop(client, keys, lock, job, yield* Effect.scope)
    yield* Effect.forkScoped(Effect.forever(persistent(name, loop.turn)))
  })

const pausing = growing("1 second", "30 seconds")

/** Goes on after a failure, such as that of Redis, even an unexpected one; says once that it has failed. */
const persistent = <E, R>(name: string, self: Effect.Effect<void, E, R>): Effect.Effect<void, never, R> =>
  Effect.suspend(() => {
    let isTold = false
    return Effect.retry(
      Effect.tapError(Effect.catchDefect(self, Effect.fail), (error) => {
        if (isTold) return Effect.void
        isTold = true
        return Effect.annotateLogs(
          Effect.logWarning("A schedule was interrupted by a failure, and tries again.", error),
          {
            cron: name
          }
        )
      }),
      pausing
    ) as Effect.Effect<void, never, R>
  })
