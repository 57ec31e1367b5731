/**
 * What Redisson's own tests verify of its RCountDownLatch, by the numbers of the project's list of behaviours, where no other test here
 * proves it.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { CountDownLatch, LockStore, RedisLock } from "effect-redis-lock"
import { onRedis } from "../kit/stores.ts"
import { observedStore, waiterSleepsOn } from "../kit/observedStore.ts"
import { background } from "../kit/background.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { freshName } from "../kit/names.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"

// messages must do: nobody here waits for the fallback interval
const clients = closingSubscriptions(100)(RedisLock.layerFromStore({ fallbackInterval: "5 minutes" }))
const otherClient = asAnotherClient(clients)

const channelOf = (latch: string) => `redisson_countdownlatch__channel__{${latch}}`

const suite = <E>(name: string, store: Layer.Layer<LockStore.LockStore, E>) =>
  it.layer(Layer.provideMerge(clients, observedStore(store)), { excludeTestServices: true })(
    `RCountDownLatch on ${name}`,
    (it) => {
      it.effect("196. an absent latch has count 0", () =>
        Effect.gen(function* () {
          assert.strictEqual(yield* CountDownLatch.count(freshName("redisson:latch")), 0)
        })
      )

      it.effect("197. trySetCount is true once, false while a count exists", () =>
        Effect.gen(function* () {
          const latch = CountDownLatch.make(freshName("redisson:latch"))
          assert.isTrue(yield* CountDownLatch.trySetCount(latch, 2))
          assert.isFalse(yield* CountDownLatch.trySetCount(latch, 5))
          assert.strictEqual(yield* CountDownLatch.count(latch), 2)
          yield* CountDownLatch.delete(latch)
          assert.isTrue(yield* CountDownLatch.trySetCount(latch, 1))
          yield* CountDownLatch.delete(latch)
        })
      )

      it.effect("198. countDown lowers 2, 1, 0 and stays there; await returns at once at 0, repeatedly", () =>
        Effect.gen(function* () {
          const latch = freshName("redisson:latch")
          yield* CountDownLatch.trySetCount(latch, 2)
          const counts = []
          for (let i = 0; i < 4; i++) {
            counts.push(yield* CountDownLatch.countDown(latch))
            counts.push(yield* CountDownLatch.count(latch))
          }
          assert.deepStrictEqual(counts, [1, 1, 0, 0, 0, 0, 0, 0])
          yield* CountDownLatch.await(latch)
          yield* CountDownLatch.await(latch)
        })
      )

      it.effect("199. await and countDown on a latch that was never set are harmless", () =>
        Effect.gen(function* () {
          const latch = freshName("redisson:latch")
          yield* CountDownLatch.await(latch)
          assert.strictEqual(yield* CountDownLatch.countDown(latch), 0)
          yield* CountDownLatch.await(latch)
          assert.isTrue(yield* CountDownLatch.trySetCount(latch, 1))
          yield* CountDownLatch.delete(latch)
        })
      )

      it.effect("200. a timed await succeeds when the last countDown comes in time", () =>
        Effect.gen(function* () {
          const latch = freshName("redisson:latch")
          yield* CountDownLatch.trySetCount(latch, 2)
          const waiter = yield* background(CountDownLatch.await(latch, { waitTime: "30 seconds" }))
          yield* waiterSleepsOn(channelOf(latch))
          yield* otherClient(CountDownLatch.countDown(latch))
          assert.isUndefined(waiter.pollUnsafe())
          yield* otherClient(CountDownLatch.countDown(latch))
          yield* Fiber.join(waiter)
        })
      )

      it.effect("204. delete is true when the latch existed, false otherwise", () =>
        Effect.gen(function* () {
          const latch = freshName("redisson:latch")
          assert.isFalse(yield* CountDownLatch.delete(latch))
          yield* CountDownLatch.trySetCount(latch, 1)
          assert.isTrue(yield* CountDownLatch.delete(latch))
          assert.isFalse(yield* CountDownLatch.delete(latch))
        })
      )
    }
  )

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)
