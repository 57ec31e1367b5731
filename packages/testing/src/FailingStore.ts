/**
 * A lock store that fails on demand: how does the application behave when Redis is gone, is full, or has run a command whose
 * reply is lost?
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LockStoreError, type LockStore, type StoreReason } from "effect-redis-lock"
import * as Store from "effect-redis-lock/LockStore"

/** Which operations fail, and how. */
export interface Failure {
  /** The `reason` of the `LockStoreError`. Default: `NotConnected`; with `carriedOut` `ConnectionLost`, after which a command may have run. */
  readonly reason?: StoreReason | undefined
  /** Which operations fail, such as `lock/acquire`, `lock/renew` or `lock/release`. Default: all. */
  readonly operations?: ReadonlyArray<LockStore.Operation> | undefined
  /** Whether a failing operation still runs, as if only its reply were lost. Default: false. */
  readonly carriedOut?: boolean | undefined
}

/**
 * Makes the store fail, and repairs it. Made by {@link layer}.
 */
export class FailingStore extends Context.Service<
  FailingStore,
  {
    /** Makes operations fail from now on; replaces an earlier failure. Subscriptions go on. */
    readonly fail: (failure?: Failure) => Effect.Effect<void>
    /** Stops all failures. */
    readonly repair: Effect.Effect<void>
    /** How many operations have failed so far. */
    readonly failures: Effect.Effect<number>
  }
>()("@effect-redis-lock/testing/FailingStore") {}

/**
 * Wraps the provided store, in memory or in Redis, in a {@link FailingStore}. Nothing fails until `fail` is called.
 *
 * The failures are those that locks see. For connections that really break, see `TcpProxy`.
 *
 * **Example**
 *
 * ```ts
 * import { FailingStore } from "@effect-redis-lock/testing"
 * import { assert, it } from "@effect/vitest"
 * import { Effect, Layer } from "effect"
 * import { Lock, LockStore, RedisLock } from "effect-redis-lock"
 *
 * const locks = RedisLock.layerFromStore().pipe(
 *   Layer.provideMerge(FailingStore.layer),
 *   Layer.provide(LockStore.layerMemory)
 * )
 *
 * it.effect("says that it is full", () => Effect.gen(function*() {
 *   const store = yield* FailingStore.FailingStore
 *   yield* store.fail({ reason: "OutOfMemory", operations: ["lock/acquire"] })
 *   const error = yield* Effect.flip(Lock.withLock(Effect.void, "ledger"))
 *   assert.strictEqual(error._tag, "LockStoreError")
 *   yield* store.repair
 *   yield* Lock.withLock(Effect.void, "ledger")
 * }).pipe(Effect.provide(locks)))
 * ```
 */
export const layer: Layer.Layer<Store.LockStore | FailingStore, never, Store.LockStore> = Layer.effectContext(
  Effect.map(Store.LockStore, (store) => {
    let failure: Failure | undefined
    let failures = 0
    const run: (typeof store)["run"] = (command) =>
      Effect.suspend(() => {
        const current = failure
        const operation = command.operation.name
        if (current === undefined || current.operations?.includes(operation) === false) {
          return store.run(command)
        }
        failures++
        const { carriedOut = false, reason = carriedOut ? "ConnectionLost" : "NotConnected" } = current
        const error = Effect.fail(new LockStoreError({ operation, lock: command.keys[0] ?? "", reason }))
        return carriedOut ? Effect.andThen(store.run(command), error) : error
      })
    return Context.make(Store.LockStore, { ...store, run }).pipe(
      Context.add(FailingStore, {
        fail: (next = {}) =>
          Effect.sync(() => {
            failure = next
          }),
        repair: Effect.sync(() => {
          failure = undefined
        }),
        failures: Effect.sync(() => failures)
      })
    )
  })
)
