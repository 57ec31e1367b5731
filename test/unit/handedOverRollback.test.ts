/**
 * A request whose outcome is unknown, while a release hands the lock over to its owner: taking back what was handed over is not taking
 * back what the request does when it comes.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { deaf, wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

test("A request that comes after the lock was handed over to its owner, and taken back, leaves nobody holding it", function* () {
  const server = yield* testStore()
  let isBroken = false
  const scope = yield* Effect.scope
  const store = wrappedStore(server.store, (request) => {
    if (!isBroken || request.operation !== "lock/acquire") return request.run()
    isBroken = false
    // it comes later, when its sender has long given it up
    const comes = Effect.forkIn(Effect.delay(Effect.ignore(request.run()), 300), scope)
    return Effect.andThen(
      comes,
      Effect.delay(
        Effect.suspend(() => request.fail("TimedOut")),
        100
      )
    )
  })
  const holder = yield* clientOf(server)
  const waiter = yield* clientOf({ store }, { fallbackInterval: "1 second" })
  const other = yield* clientOf(server, { fallbackInterval: "1 second" })
  yield* background(as(holder)(Lock.withLock(Effect.sleep(1050), "a")))
  yield* TestClock.adjust(10)
  let waited: unknown
  yield* as(waiter)(Lock.withLock(Effect.void, "a", { waitTime: 1100, leaseTime: "1 hour" })).pipe(
    Effect.exit,
    Effect.tap((exit) => Effect.sync(() => (waited = exit._tag))),
    background
  )
  yield* TestClock.adjust(900)
  isBroken = true
  yield* TestClock.adjust(1000)
  assert.isDefined(waited)
  let entered = false
  yield* Effect.sync(() => (entered = true)).pipe(Lock.withLock("a"), as(other), background)
  yield* TestClock.adjust("1 minute")
  assert.isTrue(entered)
})

test("A request for a fair lock that comes after the lock was handed over to its owner, and taken back, leaves nobody holding it", function* () {
  const lock = FairLock.make("a")
  const server = yield* testStore()
  let isLate = false
  const late: Array<string> = []
  const scope = yield* Effect.scope
  const store = wrappedStore(server.store, (request) => {
    if (!isLate || request.operation !== "fair_lock/acquire") return request.run()
    late.push(request.operation)
    // the release overtakes it
    return Effect.andThen(Effect.forkIn(Effect.delay(Effect.ignore(request.run()), 300), scope), Effect.never)
  })
  const holder = yield* clientOf(server)
  // it learns from its report that it has the lock, and asks
  const waiter = yield* clientOf({ store: deaf(store) })
  const other = yield* clientOf(server)
  yield* background(as(holder)(Lock.withLock(Effect.sleep(1000), lock)))
  yield* TestClock.adjust(10)
  const waiting = yield* background(as(waiter)(Lock.withLock(Effect.never, lock)))
  yield* TestClock.adjust(900)
  isLate = true
  while (late.length === 0) yield* TestClock.adjust(10)
  yield* Fiber.interrupt(waiting)
  yield* TestClock.adjust(400)
  let entered = false
  yield* Effect.sync(() => (entered = true)).pipe(Lock.withLock(lock), as(other), background)
  yield* TestClock.adjust("10 seconds")
  assert.isTrue(entered)
})
