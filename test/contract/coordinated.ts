/**
 * Shared by the contracts of what is built on locks: a store, clients of it, and time that passes.
 */
import { Effect, Fiber, Layer } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { onlyMessages } from "../kit/onlyMessages.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { onRedis } from "../kit/stores.ts"
import { type Store, changedStore } from "../kit/wrappedStore.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"
import { suitesOn } from "../kit/test.ts"

export interface Backend {
  readonly name: string
  readonly store: Layer.Layer<LockStore.LockStore, unknown>
  readonly time: "virtual" | "real"
}

export const backends: ReadonlyArray<Backend> = [
  { name: "memory", store: LockStore.layerMemory, time: "virtual" },
  {
    name: "Redis",
    store: onRedis,
    time: "real"
  }
]

export const coordinated = ({ store, time }: Backend) => {
  const virtual = time === "virtual"
  // messages must do: nobody here waits for the fallback interval, unless a test says so
  const options: RedisLock.RedisLockOptions = { fallbackInterval: "10 minutes" }
  const clients = RedisLock.layerFromStore(options).pipe(closingSubscriptions(100), onlyMessages(options))

  /** A client of the store, as somebody changed it, with other options. */
  const over =
    (change: (store: Store) => Store, own: RedisLock.RedisLockOptions = {}) =>
    <A, E, R>(self: Effect.Effect<A, E, R>) =>
      Effect.provide(
        self,
        Layer.fresh(RedisLock.layerFromStore({ ...options, ...own })).pipe(
          closingSubscriptions(100),
          onlyMessages({ ...options, ...own }),
          Layer.provide(changedStore(change))
        )
      )

  return {
    virtual,
    over,
    suite: suitesOn(Layer.provideMerge(clients, store), { excludeTestServices: !virtual }),
    elsewhere: asAnotherClient(clients),
    /** Waits for a fiber, letting time pass. */
    joined: Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>) {
      if (virtual) while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
      return yield* Fiber.join(fiber)
    }),
    /** Waits until something is true, letting time pass. */
    until: Effect.fnUntraced(function* (condition: () => boolean) {
      while (!condition()) yield* virtual ? TestClock.adjust("10 millis") : Effect.sleep(2)
    })
  }
}
