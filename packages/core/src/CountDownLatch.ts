/**
 * Latches that are counted down: some wait until others, anywhere, have done something so many times.
 *
 * A latch is a value. Making one costs nothing and talks to nobody; where a function takes a latch, a name does as well.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Types from "effect/Types"
import { parseWait } from "./internal/options/durations.ts"
import { latchChannel } from "./internal/store/keys.ts"
import { LatchImpl, latchOf, latchTitle, TypeId as internalTypeId } from "./internal/locks/LatchImpl.ts"
import type { LockClient } from "./internal/client/LockClient.ts"
import { shown } from "./internal/report/shown.ts"
import { type Invalid, run, use } from "./internal/locks/Synchronizer.ts"
import { InvalidLockOptions, type LatchTimeout, type LockStoreError } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Marks the values of this module at run time; see {@link isCountDownLatch}.
 *
 * @category type IDs
 * @since 0.3.0
 */
export const TypeId: TypeId = internalTypeId

/**
 * The type of {@link TypeId}.
 *
 * @category type IDs
 * @since 0.3.0
 */
export type TypeId = "~effect-redis-lock/CountDownLatch"

/**
 * A latch. `R` is what using it requires: {@link RedisLock}, or nothing once a service is bound with {@link provide}.
 *
 * @category models
 * @since 0.2.0
 */
export interface CountDownLatch<out R = RedisLock> extends Pipeable {
  readonly [TypeId]: { readonly _R: Types.Covariant<R> }
  readonly name: string
}

/**
 * Whether a value is a latch of this library.
 *
 * **When to use**
 *
 * To narrow an unknown value, or to tell a latch from its name where either is accepted.
 *
 * @category guards
 * @since 0.3.0
 */
export const isCountDownLatch = (u: unknown): u is CountDownLatch<unknown> => Predicate.hasProperty(u, TypeId)

/**
 * A latch, as Redisson's `RCountDownLatch`: its count is a key in Redis that is there while the count is above zero. A
 * latch that nobody has set, or that has been counted down, is open.
 *
 * The name is any non-empty string of at most 1 KiB in UTF-8 without NUL. On a Redis Cluster it must not contain braces:
 * Redisson puts the channel of such a latch into another slot, and every function fails with `InvalidLockName`.
 *
 * **When not to use**
 *
 * The count has no expiry: where somebody who should count down has died, waiters wait until somebody else does it, deletes
 * the latch, or their `waitTime` is over. To wait for the end of work that one process does, let it hold a lock.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { CountDownLatch } from "effect-redis-lock"
 *
 * const imported = CountDownLatch.make("imports-2026-11-21")
 *
 * const coordinator = Effect.andThen(
 *   CountDownLatch.trySetCount(imported, 3),
 *   CountDownLatch.await(imported, { waitTime: "10 minutes" })
 * )
 * const worker = Effect.andThen(Effect.log("import a part"), CountDownLatch.countDown(imported))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (name: string): CountDownLatch => new LatchImpl(name, undefined)

/**
 * Binds a latch to one service, so that using it requires nothing.
 *
 * @category combinators
 * @since 0.2.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R>(latch: CountDownLatch<R>) => CountDownLatch<Exclude<R, RedisLock>>
  <R>(latch: CountDownLatch<R>, service: RedisLock["Service"]): CountDownLatch<Exclude<R, RedisLock>>
} = dual(2, <R>(latch: CountDownLatch<R>, service: RedisLock["Service"]): CountDownLatch<Exclude<R, RedisLock>> => {
  const { invalid, name } = latchOf(latch)
  return new LatchImpl(name, service as LockClient, invalid)
})

const withLatch = <R, A, E>(
  latch: CountDownLatch<R> | string,
  f: (client: LockClient, key: string, channel: string) => Effect.Effect<A, E>
): Effect.Effect<A, E | Invalid, R> => use(latchOf(latch), (client, key) => f(client, key, latchChannel(key)))

/**
 * Sets the count of a latch that has none: a whole number from 1. `false`, and nothing changed, where there is a count
 * already.
 *
 * Fails with `InvalidLockOptions` and `InvalidLockName` before any command, with `LockStoreError` when Redis could not be
 * asked.
 *
 * @category counting
 * @since 0.2.0
 */
export const trySetCount = <R = RedisLock>(
  latch: CountDownLatch<R> | string,
  count: number
): Effect.Effect<boolean, LockStoreError | Invalid, R> => {
  if (!Number.isSafeInteger(count) || count < 1) {
    const problem = `it is not a whole number from 1 (${shown(count)})`
    return Effect.fail(new InvalidLockOptions({ option: "count", problem }))
  }
  return withLatch(latch, (client, key, channel) =>
    Effect.map(
      run(client, latchTitle, { operation: "latch/set", keys: [key, channel], args: [count, client.store.publish] }),
      (reply) => reply === 1
    )
  )
}

/**
 * Counts down by one and gives the count that is left; at zero everybody who waits goes on. Zero, and nothing changed, where
 * there is no count.
 *
 * Fails with `LockStoreError` when Redis could not be asked, with `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * **Gotchas**
 *
 * After a `LockStoreError` whose `isOutcomeUnknown` is true, and after an interruption, the latch may or may not have been
 * counted down: counting again may count twice.
 *
 * @category counting
 * @since 0.2.0
 */
export const countDown = <R = RedisLock>(
  latch: CountDownLatch<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> =>
  withLatch(latch, (client, key, channel) =>
    Effect.map(
      run(client, latchTitle, { operation: "latch/count_down", keys: [key, channel], args: [client.store.publish] }),
      (reply) => reply as number
    )
  )

/**
 * The count of a latch; zero where it is open.
 *
 * Fails with `LockStoreError` when Redis could not be asked, with `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.2.0
 */
export const count = <R = RedisLock>(
  latch: CountDownLatch<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> =>
  withLatch(latch, (client, key) =>
    Effect.map(run(client, latchTitle, { operation: "latch/count", keys: [key], args: [] }), (reply) => reply as number)
  )

/**
 * How to wait for a latch.
 *
 * @category options
 * @since 0.2.0
 */
export interface AwaitOptions {
  /**
   * How long to wait at most; zero to look once. Then `LatchTimeout`. While Redis does not answer, it may be exceeded by one
   * command timeout of the driver. Default: without limit.
   *
   * The wait outlives what passes by itself: a restart, a failover, a lost connection and every other `LockStoreError` whose
   * `isTransient` is true. If Redis still cannot be asked when the time is over, the wait fails with that `LockStoreError`.
   */
  readonly waitTime?: Duration.Input | undefined
}

const await_ = <R = RedisLock>(
  latch: CountDownLatch<R> | string,
  options?: AwaitOptions
): Effect.Effect<void, LatchTimeout | LockStoreError | Invalid, R> => {
  const waitMillis =
    options?.waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", options.waitTime)
  if (typeof waitMillis !== "number") return Effect.fail(waitMillis)
  return withLatch(latch, (client, key) => client.latchWaiters.await(latchOf(latch).name, key, waitMillis))
}

export {
  /**
   * Waits until the count is zero; returns at once where there is none. Woken by the last count down or by {@link delete},
   * and never dependent on it: should the message be lost, the count is looked at every fallback interval (1 second). All
   * fibers of a process that wait for a latch share one subscription and one look. The wait can be interrupted at any time.
   *
   * Fails with `LatchTimeout` when `waitTime` ran out, `LockStoreError` when Redis could not be asked, `InvalidLockName` and
   * `InvalidLockOptions` before any command.
   *
   * @example
   * ```ts
   * import { Effect } from "effect"
   * import { CountDownLatch } from "effect-redis-lock"
   *
   * const program = CountDownLatch.await("imports-done", { waitTime: "1 minute" }).pipe(
   *   Effect.andThen(Effect.log("all parts are imported"))
   * )
   * ```
   *
   * @category waiting
   * @since 0.2.0
   */
  await_ as await
}

const delete_ = <R = RedisLock>(
  latch: CountDownLatch<R> | string
): Effect.Effect<boolean, LockStoreError | Invalid, R> =>
  withLatch(latch, (client, key, channel) =>
    Effect.map(
      run(client, latchTitle, { operation: "latch/delete", keys: [key, channel], args: [client.store.publish] }),
      (reply) => reply === 1
    )
  )

export {
  /**
   * Removes the count, whatever it is, and lets everybody who waits go on, waiters of Redisson included. `false` where there
   * was none.
   *
   * Fails with `LockStoreError` when Redis could not be asked, with `InvalidLockName` and `InvalidLockOptions` before any
   * command.
   *
   * @category counting
   * @since 0.2.0
   */
  delete_ as delete
}
