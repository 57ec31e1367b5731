/**
 * What Redisson's own tests verify of its subscriptions, by the numbers of the project's list of behaviours. There the tests
 * reach into the classes behind a lock; here they go through a lock where that shows the same.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Lock, LockStore, LockStoreError, RedisLock } from "effect-redis-lock"
import { onlyMessages } from "../kit/onlyMessages.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { elapsed, held, dyingClient, otherClient, storeAt } from "./kit.ts"
import { soon } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { observedStore, waiterSleepsOn } from "../kit/observedStore.ts"
import { testLive } from "../kit/test.ts"
import { background } from "../kit/background.ts"

// so long that nobody is ever woken by it
const options = { fallbackInterval: "5 minutes" } as const
const patient = onlyMessages(options)(RedisLock.layerFromStore(options))

describe("signals", () => {
  it.live("43. a waiter that times out while its subscription comes about does not spoil it for the next", () =>
    Effect.gen(function* () {
      const lock = Lock.make(freshName("redisson"))
      const holder = yield* dyingClient(held(lock, { leaseTime: "5 minutes" }))
      for (let waitTime = 1; waitTime <= 12; waitTime++) {
        const error = yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime }))
        assert.strictEqual(error._tag, "LockTimeout")
      }
      const next = yield* background(Lock.withLock(Effect.succeed("in"), lock))
      yield* waiterSleepsOn(`redisson_lock__channel:{${lock.name}}`)
      yield* otherClient(Lock.forceRelease(lock))
      yield* holder.letGo
      assert.strictEqual(yield* soon("it is woken", Fiber.join(next)), "in")
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(patient, observedStore(storeAt(redisUrl)))))
  )

  testLive("44. a subscription that fails keeps nobody from subscribing later", function* () {
    let refusals = 2
    const subscribed = yield* Deferred.make<void>()
    const unserved = Layer.effect(
      LockStore.LockStore,
      Effect.map(LockStore.LockStore, (store) => ({
        ...store,
        subscribe: (channel) =>
          Stream.unwrap(
            Effect.sync(() => {
              if (refusals-- > 0) {
                const cause = new Error("no node serves the channel")
                return Stream.fail(
                  new LockStoreError({ operation: "subscribe", lock: channel, reason: "ClusterDown", cause })
                )
              }
              Deferred.doneUnsafe(subscribed, Effect.void)
              return store.subscribe(channel)
            })
          )
      }))
    ).pipe(Layer.provide(LockStore.layerMemory))
    yield* Effect.gen(function* () {
      const lock = Lock.make(freshName("redisson"))
      const holder = yield* dyingClient(held(lock, { leaseTime: "5 minutes" }))
      const waiters = yield* background(
        Effect.forEach([1, 2], () => Lock.withLock(Effect.succeed("in"), lock), { concurrency: "unbounded" })
      )
      yield* Deferred.await(subscribed)
      assert.isBelow(refusals, 0)
      yield* otherClient(Lock.forceRelease(lock))
      yield* holder.letGo
      assert.deepStrictEqual(yield* soon("they are woken", Fiber.join(waiters)), ["in", "in"])
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(patient, unserved)))
  })
})

describe("a lock's message", () => {
  it.live("43. is not waited for beyond the wait time, when subscribing takes longer", () =>
    Effect.gen(function* () {
      const lock = Lock.make(freshName("redisson"))
      yield* dyingClient(held(lock, { leaseTime: "5 minutes" }))
      const { millis, result } = yield* elapsed(Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 200 })))
      assert.strictEqual(result._tag, "LockTimeout")
      assert.isAtLeast(millis, 199)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(
          patient,
          Layer.effect(
            LockStore.LockStore,
            Effect.map(LockStore.LockStore, (store) => ({ ...store, subscribe: () => Stream.never }))
          ).pipe(Layer.provide(LockStore.layerMemory))
        )
      )
    )
  )
})
