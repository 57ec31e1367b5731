/**
 * Countdown latches: some fibers wait until others, in any process, have counted down to zero.
 *
 * A latch is a value. Making one costs nothing and sends no command; every function that takes a latch also accepts a name.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Types from "effect/Types"
import type { AcquireOptions, OnlyOptions } from "./AcquireOptions.ts"
import { awaitLatch } from "./internal/acquire/awaitLatch.ts"
import { LatchImpl, latchKind, latchOf, LatchTypeId as TypeId } from "./internal/locks/Synchronizer.ts"
import { invalidIf, isDataFirst, parseWait } from "./internal/options/acquireOptions.ts"
import { shown } from "./internal/report/shown.ts"
import * as operations from "./internal/store/operations/latch.ts"
import type { CommandError, LatchTimeout, TimeoutOf, WaitTimeOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A latch. `R` is the services that it requires: {@link RedisLock}, or none once a service is bound with {@link provide}.
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
 * A latch, or the name of one.
 *
 * @category type-level
 * @since 0.3.0
 */
export type LatchOrName = CountDownLatch<unknown> | string

/**
 * The services that a latch requires; for a name, {@link RedisLock}.
 *
 * @category type-level
 * @since 0.3.0
 */
export type Services<L> = L extends CountDownLatch<infer R> ? R : RedisLock

/**
 * A latch like Redisson's `RCountDownLatch`: its count is a key in Redis that exists while the count is above zero. A latch
 * that was never set, or that has been counted down to zero, is open.
 *
 * The name is any non-empty string of at most 1 KiB in UTF-8 without NUL. On a Redis Cluster it must not contain braces:
 * Redisson puts the channel of such a latch into another slot, so every function fails with `InvalidLockName`.
 *
 * **When to use**
 *
 * To wait until several processes have done their parts.
 *
 * **When not to use**
 *
 * To wait until one process has finished its work: have it hold a lock.
 *
 * **Gotchas**
 *
 * The count has no expiry: if a process that should count down has died, waiters wait until somebody else counts down or
 * deletes the latch, or until their `waitTime` is over.
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
export const make = (name: string): CountDownLatch => new LatchImpl(name, latchKind)

/**
 * Binds a latch to one service, so that it requires no other.
 *
 * @category combinators
 * @since 0.2.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R>(latch: CountDownLatch<R>) => CountDownLatch<Exclude<R, RedisLock>>
  <R>(latch: CountDownLatch<R>, service: RedisLock["Service"]): CountDownLatch<Exclude<R, RedisLock>>
} = dual(2, <R>(latch: CountDownLatch<R>, service: RedisLock["Service"]): CountDownLatch<Exclude<R, RedisLock>> => {
  const { invalid, kind, name } = latchOf(latch)
  return new LatchImpl(name, kind, service, invalid)
})

/**
 * Sets the count of a latch that has none: a whole number from 1. Returns `false` and changes nothing if it already has a
 * count.
 *
 * Fails with `InvalidLockOptions` and `InvalidLockName` before any command, with `LockStoreError` when the request to Redis
 * failed.
 *
 * @category counting
 * @since 0.2.0
 */
export const trySetCount: {
  (count: number): <L extends LatchOrName>(latch: L) => Effect.Effect<boolean, CommandError, Services<L>>
  <L extends LatchOrName>(latch: L, count: number): Effect.Effect<boolean, CommandError, Services<L>>
} = dual(2, (latch: LatchOrName, count: number) => {
  const isCount = Number.isSafeInteger(count) && count >= 1
  const problem = isCount ? undefined : `it is not a whole number from 1 (${shown(count)})`
  return latchOf(latch).run((key, { publish }) => operations.set(key, count, publish), invalidIf("count", problem))
})

/**
 * Counts down by one and returns the remaining count; at zero all waiters continue. Returns zero and changes nothing if
 * there is no count.
 *
 * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before any
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
export const countDown = <L extends LatchOrName>(latch: L): Effect.Effect<number, CommandError, Services<L>> =>
  latchOf(latch).run((key, { publish }) => operations.countDown(key, publish))

/**
 * The count of a latch; zero if it is open.
 *
 * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.2.0
 */
export const count = <L extends LatchOrName>(latch: L): Effect.Effect<number, CommandError, Services<L>> =>
  latchOf(latch).run(operations.count)

/**
 * Options of waiting for a latch. When the `waitTime` is over, the wait fails with `LatchTimeout`.
 *
 * @category options
 * @since 0.2.0
 */
export interface AwaitOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends Pick<AcquireOptions<WaitTime>, "waitTime"> {}

const await_: <
  Arg extends LatchOrName | OnlyOptions<Arg, AwaitOptions>,
  WaitTime extends Duration.Input | undefined = undefined
>(
  latchOrOptions: Arg,
  options?: AwaitOptions<WaitTime>
) => [Arg] extends [LatchOrName]
  ? Effect.Effect<void, TimeoutOf<WaitTime, LatchTimeout> | CommandError, Services<Arg>>
  : <L extends LatchOrName>(
      latch: L
    ) => Effect.Effect<void, TimeoutOf<WaitTimeOf<Arg>, LatchTimeout> | CommandError, Services<L>> = dual(
  isDataFirst,
  (latch: LatchOrName, options?: AwaitOptions) => {
    const waitMillis = parseWait("waitTime", options?.waitTime ?? Number.POSITIVE_INFINITY)
    if (typeof waitMillis !== "number") return Effect.fail(waitMillis)
    const impl = latchOf(latch)
    return impl.use((client, key) => awaitLatch({ client, name: impl.name, key, waitMillis }))
  }
)

export {
  /**
   * Waits until the count is zero; returns at once if there is no count. The wait can be interrupted at any time.
   *
   * **Details**
   *
   * The last {@link countDown}, or {@link delete}, wakes all waiters. Should that message be lost, they read the count
   * every fallback interval (1 second). All fibers of a process that wait for a latch share one subscription and one such
   * read.
   *
   * Fails with `LatchTimeout` when `waitTime` ran out, `LockStoreError` when the request to Redis failed, `InvalidLockName`
   * and `InvalidLockOptions` before any command.
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

const delete_ = <L extends LatchOrName>(latch: L): Effect.Effect<boolean, CommandError, Services<L>> =>
  latchOf(latch).run((key, { publish }) => operations.remove(key, publish))

export {
  /**
   * Removes the count, whatever it is, and lets all waiters continue, including those in Java. Returns `false` if there was
   * none.
   *
   * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before
   * any command.
   *
   * @category counting
   * @since 0.2.0
   */
  delete_ as delete
}
