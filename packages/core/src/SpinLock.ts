/**
 * Spin locks: their waiters poll instead of using pub/sub.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Schedule from "effect/Schedule"
import type { AcquireOptions, TokenOf, TokenOptions } from "./AcquireOptions.ts"
import { spin } from "./internal/kinds/kinds.ts"
import { makeLock } from "./internal/locks/LockImpl.ts"
import { invalidIf } from "./internal/options/acquireOptions.ts"
import { shown } from "./internal/report/shown.ts"
import { growing } from "./internal/time/clock.ts"
import type { Lock } from "./Lock.ts"
import type { TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.2.0
 */
export interface SpinOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined,
  out S extends Schedule.Schedule<unknown> | undefined = Schedule.Schedule<unknown> | undefined
> extends AcquireOptions<WaitTime> {
  /**
   * The pauses between attempts, each of at least a millisecond. When the schedule ends, the wait fails with `LockTimeout`.
   * Default: 1 ms, doubled up to 128 ms, each varied by up to a fifth, so that processes do not retry together. Redisson's constant backoff is
   * `Schedule.spaced("64 millis")`.
   */
  readonly schedule?: S | undefined
}

/**
 * A reentrant lock whose waiters never subscribe: they retry after a pause. Otherwise it is the lock of {@link Lock.make}:
 * the two share their names, and the release of either wakes the waiters of a plain lock. Every function of `Lock` works on it.
 *
 * Only one of the waiting fibers of a process sends requests at a time. A free lock is granted to the first request, so a process
 * gets it at the first of its requests that finds it free. While other fibers of the process wait for it as a plain lock, it asks at
 * least once in a `fallbackInterval`, however long its pauses are. There is no order among processes: nothing limits how many sections
 * of others pass before that.
 *
 * **When not to use**
 *
 * As the default choice, or where every process must get the lock within a bounded number of sections. It is for Redis deployments
 * that forbid or cannot carry pub/sub (a large cluster without sharded pub/sub, where every message goes to every node), and for
 * sections far shorter than a round trip.
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
export const make = <
  WaitTime extends Duration.Input | undefined = undefined,
  S extends Schedule.Schedule<unknown> | undefined = undefined,
  Tokens extends "time" | "none" = "time"
>(
  name: string,
  options?: SpinOptions<WaitTime, S> & TokenOptions<Tokens>
): Lock<RedisLock, TimeoutOf<WaitTime> | TimeoutOf<S>, TokenOf<Tokens>> => {
  const schedule = options?.schedule ?? doubling
  const problem = Schedule.isSchedule(schedule) ? undefined : `${shown(schedule)} is not a schedule`
  return makeLock(name, spin(schedule), options, invalidIf("schedule", problem))
}

/** The pauses of Redisson's exponential backoff. */
const doubling = Schedule.jittered(growing("1 millis", "128 millis"))
