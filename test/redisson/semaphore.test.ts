/**
 * What Redisson's own tests verify of its RSemaphore, by the numbers of the project's list of behaviours.
 *
 * - 167 is scaled down: 4 clients with 5 sections each.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Semaphore } from "effect-redis-lock"
import { eventually } from "../kit/eventually.ts"
import { onBothStores, otherClient } from "./semaphoreKit.ts"

onBothStores("RSemaphore", (test) => {
  test("152. trySetPermits on an absent semaphore is true; again it is false and changes nothing", function* (semaphore) {
    assert.isTrue(yield* Semaphore.trySetPermits(semaphore, 10))
    assert.isFalse(yield* Semaphore.trySetPermits(semaphore, 15))
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 10)
  })

  test("153. trySetPermits with a time to live: the permits are there, then gone, and can be set again", function* (semaphore) {
    assert.isTrue(yield* Semaphore.trySetPermits(semaphore, 1, { timeToLive: "400 millis" }))
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 1)
    yield* eventually("the permits are gone", Semaphore.availablePermits(semaphore), (free) => free === 0)
    assert.isTrue(yield* Semaphore.trySetPermits(semaphore, 2))
  })

  test("154. acquiring and releasing 1 and 5 changes the available permits accordingly", function* (semaphore) {
    yield* Semaphore.trySetPermits(semaphore, 10)
    const counts = []
    for (const n of [1, 5]) {
      yield* Semaphore.acquire(semaphore, n)
      counts.push(yield* Semaphore.availablePermits(semaphore))
      yield* Semaphore.release(semaphore, n)
      counts.push(yield* Semaphore.availablePermits(semaphore))
    }
    assert.deepStrictEqual(counts, [9, 10, 5, 10])
  })

  test("155. a release without permits ever set creates them", function* (semaphore) {
    yield* Semaphore.release(semaphore)
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 1)
  })

  test("156. two releases, then acquire(2), on a semaphore that was never set", function* (semaphore) {
    yield* Semaphore.release(semaphore)
    yield* Semaphore.release(semaphore)
    yield* Semaphore.acquire(semaphore, 2)
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 0)
  })

  test("157. zero permits are there at once, releasing zero is nothing, and nothing is created", function* (semaphore) {
    assert.isTrue(yield* Semaphore.tryAcquire(semaphore, 0))
    yield* Semaphore.acquire(semaphore, 0, { waitTime: "10 minutes" })
    assert.strictEqual(yield* Semaphore.withPermits(Effect.succeed("in"), semaphore, 0), "in")
    yield* Semaphore.release(semaphore, 0)
    assert.isTrue(yield* Semaphore.trySetPermits(semaphore, 1), "it exists")
  })

  test("158. addPermits(4) after all 10 are taken gives 4; releasing the 10 gives 14", function* (semaphore) {
    yield* Semaphore.trySetPermits(semaphore, 10)
    yield* Semaphore.acquire(semaphore, 10)
    yield* Semaphore.addPermits(semaphore, 4)
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 4)
    yield* Semaphore.release(semaphore, 10)
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 14)
  })

  test("159. addPermits(-5) with all taken gives -5; after releasing 10 it is 5", function* (semaphore) {
    yield* Semaphore.trySetPermits(semaphore, 10)
    yield* Semaphore.acquire(semaphore, 10)
    yield* Semaphore.addPermits(semaphore, -5)
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), -5)
    assert.isFalse(yield* Semaphore.tryAcquire(semaphore))
    yield* Semaphore.release(semaphore, 10)
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 5)
  })

  test("160. drainPermits gives 0 on an absent semaphore, otherwise the rest, and leaves 0", function* (semaphore) {
    assert.strictEqual(yield* Semaphore.drainPermits(semaphore), 0)
    yield* Semaphore.trySetPermits(semaphore, 10)
    yield* Semaphore.acquire(semaphore, 3)
    for (const left of [7, -5]) {
      assert.strictEqual(yield* Semaphore.drainPermits(semaphore), left)
      assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 0)
      yield* Semaphore.addPermits(semaphore, -5)
    }
  })

  test("161. releaseIfExists adds to an existing semaphore and refuses an absent one", function* (semaphore) {
    assert.isFalse(yield* Semaphore.releaseIfExists(semaphore))
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 0)
    yield* Semaphore.trySetPermits(semaphore, 3)
    assert.isTrue(yield* Semaphore.releaseIfExists(semaphore, 2))
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 5)
  })

  test("167. of Integer.MAX_VALUE permits, one and all are asked for in turn, and everybody gets through", function* (name) {
    const most = 2_147_483_647
    const semaphore = Semaphore.make(name, { permits: most })
    const section = (permits: number) => Semaphore.withPermits(Effect.yieldNow, semaphore, permits)
    yield* Effect.forEach(
      Array.from({ length: 4 }),
      () => otherClient(Effect.forEach([1, most, 1, most, 1], section, { concurrency: "unbounded", discard: true })),
      { concurrency: "unbounded" }
    )
    assert.strictEqual(yield* Semaphore.availablePermits(semaphore), most)
  })
})
