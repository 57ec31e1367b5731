/**
 * Permits that are held for so long that Redis has forgotten whose they are.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Semaphore } from "effect-redis-lock"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const semaphore = Semaphore.make("daily", { permits: 1 })

for (const [what, reason] of [
  ["cannot be reached", "NotConnected"],
  ["does not answer", "TimedOut"]
] as const) {
  test(`Permits that were held for more than a day are given back although Redis ${what} at first`, function* () {
    const [server, service] = yield* storeWith({})
    server.reason = reason
    const section = yield* background(as(service)(Semaphore.withPermits(Effect.sleep("25 hours"), semaphore, 1)))
    yield* TestClock.adjust("24 hours")
    server.refuses = (operation) => operation === "semaphore/return"
    yield* TestClock.adjust("1 hour")
    server.refuses = () => false
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(Exit.isSuccess(yield* Fiber.await(section)))
    assert.strictEqual(yield* as(service)(Semaphore.availablePermits(semaphore)), 1)
  })
}

test("Permits that were held for more than a day are given back once, though the reply is lost", function* () {
  const server = yield* testStore()
  let lost = 0
  const store = wrappedStore(server.store, ({ fail, operation, run }) =>
    operation === "semaphore/return" && lost++ <= 2 ? Effect.andThen(run(), fail("TimedOut")) : run()
  )
  const service = yield* clientOf({ store })
  const section = yield* background(as(service)(Semaphore.withPermits(Effect.sleep("25 hours"), semaphore, 1)))
  yield* TestClock.adjust("26 hours")
  assert.isTrue(Exit.isSuccess(yield* Fiber.await(section)))
  assert.isAbove(lost, 3)
  assert.strictEqual(yield* as(service)(Semaphore.availablePermits(semaphore)), 1)
})

for (const [lives, timeToLive, held] of [
  ["a minute", "1 minute", "90 seconds"],
  ["an hour", "1 hour", "25 hours"],
  ["two days", "2 days", "50 hours"]
] as const) {
  test(`Permits of a semaphore whose time to live has ended are not given back to the next one of its name: it lives for ${lives}`, function* () {
    const run = as(yield* Effect.flatMap(testStore(), (server) => clientOf(server)))
    yield* run(Semaphore.trySetPermits("quota", 2, { timeToLive }))
    const section = yield* background(Effect.flip(run(Semaphore.withPermits(Effect.sleep(held), "quota", 2))))
    yield* TestClock.adjust(timeToLive)
    yield* TestClock.adjust("1 second")
    assert.isTrue(yield* run(Semaphore.trySetPermits("quota", 2)))
    yield* TestClock.adjust(held)
    const lost = yield* Fiber.join(section)
    assert.strictEqual(lost._tag === "LockLost" ? lost.reason : lost._tag, "NotOwner")
    assert.strictEqual(yield* run(Semaphore.availablePermits("quota")), 2)
  })
}

for (const [where, timeToLive, held] of [
  ["to a semaphore that lives for longer", "2 days", Duration.hours(25)],
  ["in the last hour of a semaphore's ten days", "10 days", Duration.subtract(Duration.days(10), Duration.minutes(30))]
] as const) {
  test(`Permits that were held for more than a day are given back ${where}`, function* () {
    const run = as(yield* Effect.flatMap(testStore(), (server) => clientOf(server)))
    yield* run(Semaphore.trySetPermits("quota", 2, { timeToLive }))
    const section = yield* background(run(Semaphore.withPermits(Effect.sleep(held), "quota", 2)))
    yield* TestClock.adjust(held)
    yield* Fiber.join(section)
    assert.strictEqual(yield* run(Semaphore.availablePermits("quota")), 2)
  })
}

test("Permits that were held for more than a day are given back by a client that closes", function* () {
  const server = yield* testStore()
  const scope = yield* Scope.make()
  const service = yield* Scope.provide(clientOf(server), scope)
  yield* background(as(service)(Semaphore.withPermits(Effect.never, semaphore, 1)))
  yield* TestClock.adjust("25 hours")
  yield* Effect.all([Scope.close(scope, Exit.void), TestClock.adjust("1 minute")], { concurrency: "unbounded" })
  const other = yield* clientOf(server)
  assert.strictEqual(yield* as(other)(Semaphore.availablePermits(semaphore)), 1)
})
