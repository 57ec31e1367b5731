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
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { type Job, makeTurn } from "./internal/coordination/schedule.ts"
import { shown } from "./internal/report/shown.ts"
import { growing } from "./internal/time/clock.ts"
import { type InvalidLockName, InvalidLockOptions } from "./LockError.ts"
import * as NonReentrantLock from "./NonReentrantLock.ts"
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
  /**
   * `Cron.parse("0 4 * * *", "Europe/Zurich")`, or a `Cron`. Time zones and daylight saving time are handled by Effect; one without a time
   * zone is in UTC, as it must mean the same in every process.
   */
  readonly cron: Cron.Cron | Result.Result<Cron.Cron, Cron.CronParseError>
  /** What runs. A failure is logged, and the tick counts as done. */
  readonly execute: Effect.Effect<unknown, E, R>
  /**
   * What to do with a tick while an earlier one is still running, in any process.
   *
   * - `"skip"`: drop it
   * - `"wait"`: run it afterwards; up to 100 ticks wait, older ones are dropped
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
   * - `"all"`: run the last 100 of them, oldest first
   *
   * Of the ticks that were missed because Redis was unreachable, the most recent one always runs, late; with `"all"`, or where ticks `"wait"`,
   * the last 100.
   * Default: `"none"`.
   */
  readonly catchUp?: "none" | "latest" | "all" | undefined
}

/**
 * Runs a job on a schedule, each tick at most once across all processes that build this layer.
 *
 * The Redis server's clock decides when a tick is due, and the tick is recorded next to the lock of the schedule's name before it runs. So
 * a process whose clock is seconds off, or that was stopped for a while, neither repeats a tick nor runs it early. Ticks hold that lock
 * while they run, unless `overlap` is `"allow"`: losing it interrupts the run, and `Lock.currentHolding(name)` has the fencing token. The
 * client's `maxHold` bounds each tick.
 *
 * **When to use**
 *
 * For a job that every instance of a service would otherwise start at the same time: a nightly report, an hourly clean-up.
 *
 * **When not to use**
 *
 * For something that runs all the time, use `Singleton.layer`. If every tick must run at least once, let the job look for what is
 * still to be done, in the place where it writes its results: what a process that died half-way has left undone is then done by
 * the next tick.
 *
 * **Gotchas**
 *
 * A process that dies half-way through a tick keeps the lock until its lease expires (30 seconds), and until then further ticks are
 * treated as overlapping. After Redis has lost its data, ticks that were missed before are not caught up, and a tick that had begun just
 * before may run again in another process.
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
> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { execute, name } = options
      const cron = inZone(Cron.isCron(options.cron) ? options.cron : yield* Effect.fromResult(options.cron))
      const job: Job<Exclude<R, CurrentScheduledTime>> = {
        cron,
        overlap: yield* oneOf("overlap", options.overlap ?? "skip", ["skip", "wait", "allow"]),
        catchUp: yield* oneOf("catchUp", options.catchUp ?? "none", ["none", "latest", "all"]),
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
      if (!everFires(cron)) return yield* new InvalidLockOptions({ option: "cron", problem: "no time matches it" })
      const turn = yield* makeTurn(NonReentrantLock.make(name), job)
      // a schedule outlives every failure, even an unexpected one
      const attempt = Effect.catchDefect(turn, Effect.fail)
      const persistent = Effect.catch(attempt, (error) =>
        Effect.logWarning("A schedule was interrupted by a failure, and tries again.", error).pipe(
          Effect.annotateLogs({ cron: name }),
          Effect.andThen(Effect.delay(Effect.retry(attempt, growing("1 second", "30 seconds")), "1 second"))
        )
      )
      yield* Effect.forkScoped(Effect.forever(persistent))
    })
  )

/** Effect takes the zone of the process, which may differ between processes, with the offset that it has when it is asked. */
const inZone = (cron: Cron.Cron): Cron.Cron =>
  Option.isSome(cron.tz) ? cron : Cron.make({ ...cron, tz: DateTime.zoneMakeNamedUnsafe("UTC") })

/** Whether a schedule has any tick: one for the 30th of February has none. */
const everFires = (cron: Cron.Cron): boolean => {
  try {
    return Cron.next(cron).getTime() > 0
  } catch {
    return false
  }
}

/** The value of an option, or why it is none. */
const oneOf = <A extends string>(option: string, value: A, values: ReadonlyArray<A>) =>
  values.includes(value)
    ? Effect.succeed(value)
    : Effect.fail(new InvalidLockOptions({ option, problem: `${shown(value)} is not one of ${values.join(", ")}` }))
