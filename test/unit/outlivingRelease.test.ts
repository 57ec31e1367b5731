/**
 * A key in Redis may live longer than the lease that its holder relies on. Until it is gone, its release is repeated.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Lock, ReadWriteLock, SpinLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

for (const [how, reading] of Object.entries({
  "has read with a long lease": Lock.withLock(Effect.void, readLock, { leaseTime: "2 minutes" }),
  "has prolonged its own read": Lock.withLock(
    Lock.withLock(Effect.void, readLock, { leaseTime: "2 minutes" }),
    readLock,
    { leaseTime: "5 seconds" }
  )
})) {
  test(`the release of a writer that ${how} is repeated until the key would be gone`, function* () {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const [server, service] = yield* storeWith({ watchdogLeaseTime: "5 seconds", releaseTimeout: "1 second" })
    const scope = yield* Scope.make()
    yield* as(service)(Scope.provide(Lock.scoped(writeLock), scope))
    // in the writer's own scope, so that it is the writer that reads
    yield* as(service)(Scope.provide(reading, scope))
    server.isDown = true
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.join(closing)
    server.isDown = false
    assert.isFalse(yield* server.isFree("a"), "its key outlives the writer's lease")
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(yield* server.isFree("a"))
  })
}

test("a lost lock is released until the end of a lease whose renewal was not answered", function* () {
  const server = yield* testStore()
  // Redis runs the first renewal, but the connection breaks before the reply
  const store = wrappedStore(server.store, ({ fail, operation, run }) => {
    if (operation !== "lock/renew" || server.isDown) return run()
    return Effect.andThen(
      Effect.tap(run(), () => Effect.sync(() => void (server.isDown = true))),
      fail("TimedOut")
    )
  })
  const service = yield* clientOf({ store }, { watchdogLeaseTime: "30 seconds" })
  const section = yield* background(Effect.flip(as(service)(Lock.withLock(Effect.never, "a"))))
  yield* TestClock.adjust("32 seconds")
  const lost = yield* Fiber.join(section)
  assert.isTrue(lost._tag === "LockLost" && lost.reason === "RenewalFailed")
  server.isDown = false
  assert.isFalse(yield* server.isFree("a"), "Redis keeps it from the renewal on")
  yield* TestClock.adjust("2 seconds")
  assert.isTrue(yield* server.isFree("a"))
})

test("a lock that was granted too late is given back for as long as Redis keeps it", function* () {
  const server = yield* testStore()
  server.delay = (operation) => (operation === "lock/acquire" ? 3000 : 0)
  // the connection breaks right after the reply
  const store = wrappedStore(server.store, ({ operation, run }) =>
    operation === "lock/acquire" ? Effect.tap(run(), () => Effect.sync(() => void (server.isDown = true))) : run()
  )
  const service = yield* clientOf({ store })
  const late = yield* background(
    Effect.flip(as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "2 seconds", waitTime: 0 })))
  )
  yield* TestClock.adjust("3500 millis")
  assert.strictEqual((yield* Fiber.join(late))._tag, "LockStoreError")
  server.isDown = false
  assert.isFalse(yield* server.isFree("a"), "its lease began when it was granted")
  yield* TestClock.adjust("1 second")
  assert.isTrue(yield* server.isFree("a"))
})

test("a lease may begin as late as a command that asks for it takes effect, which may be sent three times", function* () {
  const server = yield* testStore()
  const store = { ...server.store, commandLifeMillis: 10_000, commandTimeoutMillis: 20_000 }
  const service = yield* clientOf({ store })
  yield* Effect.gen(function* () {
    const [lease] = (service as unknown as LockClient).leases.of("a")
    lease!.asksFor(60_000, 0)
    // refused twice as its deadline was over, 20 seconds after it was sent; run the third time, just in time
    assert.strictEqual(lease!.overAt, 20_000 + 20_000 + 10_000 + 60_000)
  }).pipe(Lock.withLock("a"), as(service))
})

test("A request that may still take effect is taken back until the lease that it would begin then is over", function* () {
  const server = yield* testStore()
  const late = yield* Effect.scope
  const lost = wrappedStore(server.store, ({ fail, operation, run }) =>
    operation === "lock/acquire"
      ? Effect.andThen(Effect.forkIn(Effect.delay(run(), 9900), late), fail("TimedOut"))
      : run()
  )
  const store = { ...lost, commandLifeMillis: 10_000 }
  const service = yield* clientOf({ store })
  server.refuses = (operation) => operation === "lock/release"
  const asking = yield* Lock.withLock(Effect.void, SpinLock.make("a"), { leaseTime: "5 seconds", waitTime: 0 }).pipe(
    as(service),
    Effect.flip,
    background
  )
  yield* TestClock.adjust("10500 millis")
  assert.strictEqual((yield* Fiber.join(asking))._tag, "LockStoreError")
  assert.isFalse(yield* server.isFree("a"), "it has taken effect late")
  server.refuses = () => false
  yield* TestClock.adjust("1100 millis")
  assert.isTrue(yield* server.isFree("a"), "it is taken back")
})
