/**
 * Several clients of one store: how two instances of an application affect each other, in one test.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type InvalidLockOptions, type LockStore, RedisLock } from "effect-redis-lock"

/** A lock client, as a process of its own would have. */
export type LockClient = Context.Service.Shape<typeof RedisLock.RedisLock>

/**
 * Makes `count` clients of the provided store, until the scope is closed. Like two instances of an application, they know
 * nothing of each other: one waits for a lock that the other holds. Within one client, fibers wait in a local queue, and a
 * section can be re-entered; so a test with one client does not show what a second instance sees.
 *
 * Over `LockStore.layerMemory` they share memory and run under `TestClock`; over `LockStore.layerRedis` and a driver they share
 * a Redis.
 *
 * **Example**
 *
 * ```ts
 * import { LockClients } from "@effect-redis-lock/testing"
 * import { assert, it } from "@effect/vitest"
 * import { Effect, Option } from "effect"
 * import { Lock, LockStore, RedisLock } from "effect-redis-lock"
 *
 * it.effect("the second instance is told that the report is being written", () => Effect.gen(function*() {
 *   const [one, two] = yield* LockClients.make(2)
 *   const elsewhere = Effect.void.pipe(
 *     Lock.withLockIfAvailable("report"),
 *     Effect.provideService(RedisLock.RedisLock, two!)
 *   )
 *   const seen = yield* elsewhere.pipe(Lock.withLock("report"), Effect.provideService(RedisLock.RedisLock, one!))
 *   assert.isTrue(Option.isNone(seen))
 * }).pipe(Effect.scoped, Effect.provide(LockStore.layerMemory)))
 * ```
 */
export const make = (
  count: number,
  options?: RedisLock.RedisLockOptions
): Effect.Effect<ReadonlyArray<LockClient>, InvalidLockOptions, LockStore.LockStore | Scope.Scope> =>
  Effect.forEach(Array.from({ length: count }), () =>
    Effect.map(Layer.build(Layer.fresh(RedisLock.layerFromStore(options))), Context.get(RedisLock.RedisLock))
  )
