/**
 * The functions of two arguments, data-first and data-last.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, pipe } from "effect"
import { TestClock } from "effect/testing"
import { CountDownLatch, Lock, PermitId, PermitSemaphore, Semaphore } from "effect-redis-lock"
import { testInMemory as test } from "../kit/test.ts"
import { expectWarning } from "../run/logs.ts"
import { background } from "../kit/background.ts"

/** Rounded, as the two forms are not asked at the same moment. */
const lease = (holding: { readonly remaining: Effect.Effect<Duration.Duration> }) =>
  Effect.map(holding.remaining, (remaining) => Math.ceil(Duration.toSeconds(remaining)))

test("Lock.scoped takes its options after the lock or before it, or none", function* () {
  const lock = Lock.make("a")
  const scopes = {
    "data first": Lock.scoped(lock, { leaseTime: "10 seconds" }),
    "data last": lock.pipe(Lock.scoped({ leaseTime: "10 seconds" })),
    "data last, a name": pipe("a", Lock.scoped({ leaseTime: "10 seconds" }))
  }
  for (const [form, scoped] of Object.entries(scopes)) {
    assert.strictEqual(yield* Effect.scoped(Effect.flatMap(scoped, lease)), 10, form)
  }
  for (const scoped of [lock.pipe(Lock.scoped), Lock.scoped(lock), Lock.scoped("a"), lock.pipe(Lock.scoped({}))]) {
    assert.strictEqual(yield* Effect.scoped(Effect.flatMap(scoped, lease)), 30)
  }
})

test("Lock.tryScoped takes its options after the lock or before it, or none", function* () {
  const lock = Lock.make("a")
  const granted = Effect.map(Option.getOrThrow<any>)
  for (const scoped of [
    Lock.tryScoped(lock, { leaseTime: "10 seconds" }),
    lock.pipe(Lock.tryScoped({ leaseTime: "10 seconds" }))
  ]) {
    assert.strictEqual(yield* Effect.scoped(Effect.flatMap(granted(scoped), lease)), 10)
  }
  for (const scoped of [lock.pipe(Lock.tryScoped), Lock.tryScoped("a"), lock.pipe(Lock.tryScoped({}))]) {
    assert.strictEqual(yield* Effect.scoped(Effect.flatMap(granted(scoped), lease)), 30)
  }
})

test("a waitTime given before the lock limits the wait", function* () {
  const other = Lock.make("a").pipe(Lock.scoped({ waitTime: "5 seconds" }), Effect.scoped, Lock.withOwner)
  const holder = yield* background(Lock.withLock(Effect.never, "a"))
  const refused = yield* background(Effect.flip(other))
  yield* TestClock.adjust("5 seconds")
  assert.strictEqual((yield* Fiber.join(refused))._tag, "LockTimeout")
  yield* Fiber.interrupt(holder)
})

test("commands about a Semaphore take their permits after the semaphore or before it", function* () {
  const semaphore = Semaphore.make("s")
  const free = Semaphore.availablePermits(semaphore)
  assert.isTrue(yield* semaphore.pipe(Semaphore.trySetPermits(10, { timeToLive: "1 hour" })))
  assert.isFalse(yield* Semaphore.trySetPermits("s", 10))
  yield* semaphore.pipe(Semaphore.acquire(4))
  yield* Semaphore.acquire("s", 2)
  yield* semaphore.pipe(Semaphore.acquire(1, { waitTime: 0 }))
  yield* pipe("s", Semaphore.acquire)
  assert.strictEqual(yield* free, 2)
  assert.isFalse(yield* semaphore.pipe(Semaphore.tryAcquire(3)))
  assert.isTrue(yield* semaphore.pipe(Semaphore.tryAcquire(1)))
  assert.isTrue(yield* semaphore.pipe(Semaphore.tryAcquire))
  assert.strictEqual(yield* free, 0)
  yield* semaphore.pipe(Semaphore.release(5))
  yield* semaphore.pipe(Semaphore.release)
  assert.isTrue(yield* semaphore.pipe(Semaphore.releaseIfExists(3)))
  assert.isTrue(yield* semaphore.pipe(Semaphore.releaseIfExists))
  assert.strictEqual(yield* free, 10)
  yield* semaphore.pipe(Semaphore.addPermits(-1))
  yield* Semaphore.addPermits("s", -1)
  assert.strictEqual(yield* free, 8)
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* semaphore.pipe(Semaphore.scoped(2))
      yield* semaphore.pipe(Semaphore.scoped(2, { waitTime: 0 }))
      yield* Semaphore.scoped("s", 2)
      assert.strictEqual(yield* free, 2)
    })
  )
  assert.strictEqual(yield* free, 8)
})

test("functions on a PermitSemaphore take what they need after the semaphore or before it", function* () {
  const semaphore = PermitSemaphore.make("p")
  const free = PermitSemaphore.availablePermits(semaphore)
  assert.isTrue(yield* semaphore.pipe(PermitSemaphore.trySetPermits(5)))
  yield* semaphore.pipe(PermitSemaphore.setPermits(6))
  yield* semaphore.pipe(PermitSemaphore.addPermits(2))
  assert.strictEqual(yield* free, 8)
  const four = yield* semaphore.pipe(PermitSemaphore.scoped({ permits: 4 }))
  const one = yield* semaphore.pipe(PermitSemaphore.scoped)
  const two = Option.getOrThrow(yield* semaphore.pipe(PermitSemaphore.tryScoped({ permits: 2 })))
  assert.isTrue(Option.isSome(yield* semaphore.pipe(PermitSemaphore.tryScoped)))
  assert.isTrue(Option.isNone(yield* semaphore.pipe(PermitSemaphore.tryScoped)))
  assert.deepStrictEqual([four.ids.length, one.ids.length, two.ids.length], [4, 1, 2])
  const [id] = one.ids as readonly [string]
  // what is given back by its id, the scope cannot give back
  expectWarning(/^The scope of permits has closed, but giving them back went wrong\./)
  assert.isTrue(yield* semaphore.pipe(PermitId.updateLeaseTime(id, "1 minute")))
  const left = Option.getOrThrow(yield* semaphore.pipe(PermitId.leaseTime(id)))
  assert.strictEqual(Duration.toSeconds(left), 60)
  yield* semaphore.pipe(PermitId.release(id))
  assert.isTrue(yield* semaphore.pipe(PermitId.tryRelease(two.ids)))
  assert.strictEqual(yield* free, 3)
})

test("functions on a CountDownLatch take what they need after the latch or before it", function* () {
  const latch = CountDownLatch.make("l")
  assert.isTrue(yield* latch.pipe(CountDownLatch.trySetCount(1)))
  assert.strictEqual((yield* Effect.flip(latch.pipe(CountDownLatch.await({ waitTime: 0 }))))._tag, "LatchTimeout")
  yield* CountDownLatch.countDown(latch)
  yield* latch.pipe(CountDownLatch.await)
  yield* latch.pipe(CountDownLatch.await({}))
  yield* CountDownLatch.await("l")
})
