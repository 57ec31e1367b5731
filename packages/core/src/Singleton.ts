/**
 * Effects that run in exactly one of the processes that provide them.
 *
 * @since 0.3.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { recordOf } from "./internal/coordination/record.ts"
import * as LeaderElection from "./LeaderElection.ts"
import * as Lock from "./Lock.ts"
import type { CommandError, InvalidLockName } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Options of {@link layer}.
 *
 * @category options
 * @since 0.3.0
 */
export interface SingletonOptions {
  /**
   * When this process campaigns again after its effect has failed; another process may run it in the meantime. When the schedule
   * ends, this process stops campaigning. Default: after 1 second, doubling up to a minute, and after 1 second again once it has not
   * failed for ten minutes.
   */
  readonly restart?: Schedule.Schedule<unknown> | undefined
}

/**
 * The state of a singleton across all processes: one of them runs it, its effect has completed, or nobody runs it at the moment. `owner`
 * is the holder of the lock of its name, `term` the fencing token.
 *
 * @category models
 * @since 0.3.0
 */
export type Health =
  | { readonly _tag: "Running"; readonly owner: string; readonly term: bigint }
  | { readonly _tag: "Completed"; readonly owner: string; readonly term: bigint }
  | { readonly _tag: "Vacant" }

const electionOf = (name: string): LeaderElection.LeaderElection<Status> => LeaderElection.make(name, { value: Status })

const Status = Schema.Literals(["Running", "Completed"])
type Status = typeof Status.Type

/** Pauses that double up to a minute, and begin anew after ten minutes without a failure. */
const restarting = Schedule.jittered(
  Schedule.fromStepWithMetadata(
    Effect.sync(() => {
      let failures = 0
      return ({ elapsedSincePrevious }: Schedule.InputMetadata<unknown>) => {
        if (elapsedSincePrevious >= 600_000) failures = 0
        const pause = Duration.millis(Math.min(1000 * 2 ** failures, 60_000))
        return Effect.succeed<[number, Duration.Duration]>([++failures, pause])
      }
    })
  )
)

/**
 * Runs an effect in exactly one of the processes that build this layer. When that process crashes, is stopped for longer than its lease,
 * or closes the layer, another one takes over. If the effect fails, the failure is logged and another process gets its turn while this
 * one waits for its `restart`. If the effect completes, its process never runs it again and keeps leading, so that no other runs it while
 * that process lives: only after a loss of that leadership may another one run it.
 *
 * The process that runs it is the leader of the election of this name: in the effect,
 * `LeaderElection.currentLeadership(LeaderElection.make(name))` has the fencing token.
 *
 * **When to use**
 *
 * For something that one process must do all the time, and two must not do at once, such as consuming a queue in order.
 *
 * **When not to use**
 *
 * For a job that runs on a schedule, use `DistributedCron.layer`. For work that ends, with a result for
 * all, use `RunOnce`.
 *
 * Building it fails with `InvalidLockName`, before any command.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Singleton } from "effect-redis-lock"
 *
 * const Consumer = Singleton.layer("orders-consumer", Effect.forever(Effect.delay(Effect.log("next order"), "1 second")))
 * ```
 *
 * @category layers
 * @since 0.3.0
 */
export const layer = <A, E, R>(
  name: string,
  effect: Effect.Effect<A, E, R>,
  options?: SingletonOptions
): Layer.Layer<never, InvalidLockName, R | RedisLock> =>
  Layer.effectDiscard(
    Effect.andThen(
      // without options, only the name can be invalid
      Effect.catchTag(recordOf(Lock.make(name), "leader"), "InvalidLockOptions", Effect.die),
      Effect.forkScoped(Effect.suspend(() => run(name, effect, options)))
    )
  )

const run = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>, options: SingletonOptions | undefined) => {
  const election = electionOf(name)
  const annotated = Effect.annotateLogs({ singleton: name })
  let hasCompleted = false
  const work = Effect.tap(effect, () => Effect.sync(() => (hasCompleted = true)))
  const once = Effect.suspend(() => (hasCompleted ? Effect.void : work))
  const told = LeaderElection.currentLeadership(election).pipe(
    Effect.flatMap(({ proclaim }) => proclaim("Completed")),
    Effect.tapErrorTag("LockStoreError", (error) => {
      const problem = "A singleton has completed, but Redis has not recorded that yet; the write is repeated."
      return annotated(Effect.logWarning(problem, error))
    }),
    Effect.retry(Schedule.spaced("30 seconds")),
    Effect.ignore
  )
  const body = Effect.andThen(once, Effect.andThen(told, Effect.never))
  return LeaderElection.whileLeader(body, election, { proclaim: "Running" }).pipe(
    Effect.sandbox,
    // not reached where it is interrupted from outside, as the layer closes
    Effect.tapError((cause) =>
      annotated(
        Effect.logError("A singleton or its election has failed; the process that is elected next runs it.", cause)
      )
    ),
    Effect.retry(options?.restart ?? restarting),
    Effect.ignore
  )
}

/**
 * The current {@link Health} of a singleton, then every change, from any process. It never repeats itself and never ends; see
 * `LeaderElection.changes`.
 *
 * Fails with `LockStoreError` when Redis refuses permanently, with `InvalidLockName` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Singleton } from "effect-redis-lock"
 *
 * const program = Singleton.health("orders-consumer").pipe(
 *   Stream.take(1),
 *   Stream.runForEach((health) => Effect.log(health._tag))
 * )
 * ```
 *
 * @category getters
 * @since 0.3.0
 */
export const health = (name: string): Stream.Stream<Health, CommandError, RedisLock> =>
  Stream.map(
    LeaderElection.changes(electionOf(name)),
    Option.match({
      onNone: (): Health => ({ _tag: "Vacant" }),
      onSome: ({ owner, term, value }): Health => ({ _tag: Option.getOrElse(value, () => "Running"), owner, term })
    })
  )
