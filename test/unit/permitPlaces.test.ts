/**
 * The place of a process among those that wait for permits, while several of its fibers wait.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { permitPlaces } from "../../packages/core/dist/internal/store/keys.js"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

const pool = Semaphore.make("pool", { permits: 1 })
const forOneMinute = Semaphore.withPermits(Effect.sleep("1 minute"), pool, 1)

/** A permit that another process holds, and two that will wait for it. */
const site = Effect.gen(function* () {
  const server = yield* testStore()
  const service = yield* clientOf(server, { fallbackInterval: "10 minutes" })
  const holder = yield* Effect.forkChild(as(yield* clientOf(server))(Semaphore.withPermits(Effect.never, pool, 1)))
  yield* TestClock.adjust("1 second")
  const count = (operation: string) => server.operations.filter((other) => other === operation).length
  return { count, holder, server, wait: Effect.forkChild(as(service)(forOneMinute)) }
})

it.effect(
  "The last fiber that gives up waiting for permits gives up the place of its process, though another was served",
  () =>
    Effect.gen(function* () {
      const { count, holder, wait } = yield* site
      yield* wait
      const last = yield* wait
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(holder)
      yield* TestClock.adjust("1 second")
      const before = count("semaphore/leave")
      yield* Fiber.interrupt(last)
      assert.strictEqual(count("semaphore/leave"), before + 1)
    }).pipe(Effect.scoped)
)

it.effect("A fiber that begins to wait during the request of another has a place as soon as that one is served", () =>
  Effect.gen(function* () {
    const { count, holder, server, wait } = yield* site
    yield* wait
    yield* TestClock.adjust("1 second")
    server.delay = (operation) => (operation === "semaphore/acquire" ? 100 : 0)
    yield* Fiber.interrupt(holder)
    yield* TestClock.adjust("50 millis")
    yield* wait
    yield* TestClock.adjust("60 millis")
    const before = count("semaphore/acquire")
    yield* TestClock.adjust("110 millis")
    assert.strictEqual(count("semaphore/acquire"), before + 1)
  }).pipe(Effect.scoped)
)

it.effect("A request for permits that fails for good, after it was denied, leaves no place behind", () =>
  Effect.gen(function* () {
    const server = yield* testStore()
    const holder = yield* clientOf(server)
    yield* Effect.forkChild(as(holder)(Semaphore.withPermits(Effect.never, pool, 1)), { startImmediately: true })
    // Redis has run it, and refuses something at its end
    const store = wrappedStore(server.store, ({ fail, operation, run }) =>
      operation === "semaphore/acquire" ? Effect.andThen(run(), fail("NoPermission")) : run()
    )
    const [places] = permitPlaces("pool")
    const service = yield* clientOf({ store })
    const asking = yield* Effect.forkChild(Effect.flip(as(service)(forOneMinute)), { startImmediately: true })
    yield* TestClock.adjust("1 second")
    const error = yield* Fiber.join(asking)
    assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "NoPermission")
    assert.isTrue(yield* server.isFree(places!), "nobody has a place")
  }).pipe(Effect.scoped)
)
