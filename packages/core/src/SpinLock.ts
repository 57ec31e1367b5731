/**
 * Spin locks: waiting without pub/sub.
 *
 * @since 0.2.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { spin } from "./internal/kinds/exclusive.ts"
import { LockImpl } from "./internal/lock.ts"
import type { AcquireOptions, Lock } from "./Lock.ts"

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.2.0
 */
export interface SpinOptions extends AcquireOptions {
  /**
   * The pauses between two attempts. When the schedule ends, the wait ends with `LockTimeout`. Default:
   * {@link exponentialBackoff}. Redisson's constant backoff is `Schedule.spaced("64 millis")`.
   */
  readonly schedule?: Schedule.Schedule<unknown> | undefined
}

/**
 * A reentrant lock whose waiters never subscribe: they ask again after a pause. It is the lock of {@link Lock.make} in all else,
 * shares its name with that, and wakes its waiters. Every function of `Lock` works on it.
 *
 * Of the fibers that wait in one process, one asks.
 *
 * **When not to use**
 *
 * As the ordinary choice. It is for Redis deployments that forbid or cannot carry pub/sub (a large cluster without sharded
 * pub/sub, where every message goes to every node), and for sections far shorter than a round trip.
 *
 * @example
 * ```ts
 * import { Effect, Schedule } from "effect"
 * import { Lock, SpinLock } from "effect-redis-lock"
 *
 * const counter = SpinLock.make("counter", { schedule: Schedule.spaced("20 millis") })
 *
 * const program = Effect.log("in").pipe(Lock.withLock(counter))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (name: string, options: SpinOptions = {}): Lock =>
  new LockImpl(name, spin(options.schedule ?? exponentialBackoff()), options, undefined)

/**
 * Redisson's exponential backoff: a pause of `initial`, then each of `multiplier` times the last, and at the `k`th multiplication
 * up to `k - 1` milliseconds more, so that processes do not ask together; never above `max`. Defaults: 1 ms, doubled up to 128 ms.
 *
 * @category schedules
 * @since 0.2.0
 */
export const exponentialBackoff = (options?: {
  readonly initial?: Duration.Input | undefined
  readonly max?: Duration.Input | undefined
  readonly multiplier?: number | undefined
}): Schedule.Schedule<Duration.Duration> => {
  const initial = Duration.toMillis(Duration.fromInputUnsafe(options?.initial ?? 1))
  const max = Duration.toMillis(Duration.fromInputUnsafe(options?.max ?? 128))
  const multiplier = options?.multiplier ?? 2
  return Schedule.fromStep(
    Effect.sync(() => {
      let step = 0
      let millis = 0
      return () =>
        Effect.sync((): [Duration.Duration, Duration.Duration] => {
          millis = Math.min(max, step === 0 ? initial : millis * multiplier + Math.floor(Math.random() * step))
          step++
          return [Duration.millis(millis), Duration.millis(millis)]
        })
    })
  )
}
