/**
 * What Redisson's own tests verify of its RCountDownLatch, by the numbers of the project's list of behaviours, where no other test here
 * proves it.
 */
import { assert } from "@effect/vitest"
import { Fiber } from "effect"
import { CountDownLatch } from "effect-redis-lock"
import { waiterSleepsOn } from "../kit/observedStore.ts"
import { background } from "../kit/background.ts"
import { onBothStores, otherClient } from "./semaphoreKit.ts"

const channelOf = (latch: string) => `redisson_countdownlatch__channel__{${latch}}`

onBothStores("RCountDownLatch", (test) => {
  test("196. an absent latch has count 0", function* (latch) {
    assert.strictEqual(yield* CountDownLatch.count(latch), 0)
  })

  test("197. trySetCount is true once, false while a count exists", function* (latch) {
    assert.isTrue(yield* CountDownLatch.trySetCount(latch, 2))
    assert.isFalse(yield* CountDownLatch.trySetCount(latch, 5))
    assert.strictEqual(yield* CountDownLatch.count(latch), 2)
    yield* CountDownLatch.delete(latch)
    assert.isTrue(yield* CountDownLatch.trySetCount(latch, 1))
    yield* CountDownLatch.delete(latch)
  })

  test("198. countDown lowers 2, 1, 0 and stays there; await returns at once at 0, repeatedly", function* (latch) {
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

  test("199. await and countDown on a latch that was never set are harmless", function* (latch) {
    yield* CountDownLatch.await(latch)
    assert.strictEqual(yield* CountDownLatch.countDown(latch), 0)
    yield* CountDownLatch.await(latch)
    assert.isTrue(yield* CountDownLatch.trySetCount(latch, 1))
    yield* CountDownLatch.delete(latch)
  })

  test("200. a timed await succeeds when the last countDown comes in time", function* (latch) {
    yield* CountDownLatch.trySetCount(latch, 2)
    const waiter = yield* background(CountDownLatch.await(latch, { waitTime: "30 seconds" }))
    yield* waiterSleepsOn(channelOf(latch))
    yield* otherClient(CountDownLatch.countDown(latch))
    assert.isUndefined(waiter.pollUnsafe())
    yield* otherClient(CountDownLatch.countDown(latch))
    yield* Fiber.join(waiter)
  })

  test("204. delete is true when the latch existed, false otherwise", function* (latch) {
    assert.isFalse(yield* CountDownLatch.delete(latch))
    yield* CountDownLatch.trySetCount(latch, 1)
    assert.isTrue(yield* CountDownLatch.delete(latch))
    assert.isFalse(yield* CountDownLatch.delete(latch))
  })
})
