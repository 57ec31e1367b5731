/**
 * Permits whose request is answered late, or never, are taken back; where that is no longer possible, it is logged.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Lock, type LockStore, PermitSemaphore, type RedisLock, Semaphore } from "effect-redis-lock"
import { permitPlaces } from "../../packages/core/dist/internal/store/keys.js"
import { sectionUntilTold } from "../kit/sections.ts"
import { startable } from "../kit/startable.ts"
import { typeOfKeyIn } from "../kit/storeOperations.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const semaphore = Semaphore.make("a", { permits: 1 })

const uses: Record<string, Effect.Effect<unknown, unknown, RedisLock.RedisLock>> = {
  acquire: Semaphore.acquire(semaphore),
  tryAcquire: Semaphore.tryAcquire(semaphore)
}

/** A client whose store grants permits at once and fails after `lateMillis`; no command takes effect after ten seconds. */
const lateClient = Effect.fnUntraced(function* (commandTimeoutMillis: number, lateMillis: number) {
  const server = yield* testStore()
  const store = wrappedStore(server.store, ({ fail, operation, run }) =>
    operation === "semaphore/acquire"
      ? Effect.andThen(run(), Effect.andThen(Effect.sleep(lateMillis), fail("Failed")))
      : run()
  )
  return yield* clientOf({ store: { ...store, commandLifeMillis: 10_000, commandTimeoutMillis } })
})

for (const [name, use] of Object.entries(uses)) {
  for (const sent of [1, 3]) {
    test(`Semaphore.${name} takes back what it was granted after ${sent === 1 ? "one command timeout" : "three command timeouts"} of 90 seconds`, function* () {
      const service = yield* lateClient(90_000, sent * 90_000)
      const asking = yield* background(as(service)(use))
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(Exit.isFailure(yield* Fiber.await(asking)))
      assert.strictEqual(yield* as(service)(Semaphore.availablePermits(semaphore)), 1)
    }, 10_000)
  }

  test(`Semaphore.${name} warns that permits may be lost if it learns of the failure when Redis may have forgotten the grant`, function* () {
    expectWarning(/^Permits that may have been acquired can no longer be given back/)
    // as after the process was frozen for so long
    const service = yield* lateClient(10_000, 5 * 60_000)
    const asking = yield* background(as(service)(use))
    yield* TestClock.adjust("10 minutes")
    assert.isTrue(Exit.isFailure(yield* Fiber.await(asking)))
    assert.strictEqual(yield* as(service)(Semaphore.availablePermits(semaphore)), 0)
  }, 10_000)
}

test("A waiter that is granted a permit goes on at once, and does not wait until its process has given up its place", function* () {
  const [server, holder, client] = yield* storeWith({}, {})
  const section = yield* sectionUntilTold((body) => as(holder)(Semaphore.withPermits(body, semaphore, 1)))
  const first = yield* background(as(client)(Semaphore.acquire(semaphore)))
  const second = yield* background(as(client)(Semaphore.acquire(semaphore)))
  yield* TestClock.adjust("1 second")
  server.delay = (operation) => (operation === "semaphore/acquire" || operation === "semaphore/leave" ? 100 : 0)
  yield* section.end
  // the first one asks, and says that the second one waits
  yield* TestClock.adjust(50)
  yield* Fiber.interrupt(second)
  yield* TestClock.adjust(60)
  assert.strictEqual(yield* as(client)(Semaphore.availablePermits(semaphore)), 0)
  assert.deepStrictEqual(first.pollUnsafe(), Exit.void)
})

test("An interrupted acquisition waits for its rollback while its process gives up a place for which nobody waits", function* () {
  const [server, holder, client] = yield* storeWith({}, {})
  const section = yield* sectionUntilTold((body) => as(holder)(Semaphore.withPermits(body, semaphore, 1)))
  const first = yield* background(as(client)(Semaphore.acquire(semaphore)))
  const second = yield* background(as(client)(Semaphore.acquire(semaphore)))
  yield* TestClock.adjust("1 second")
  server.delay = (operation) => (operation === "semaphore/leave" ? 1000 : operation === "semaphore/return" ? 0 : 100)
  yield* section.end
  // the first one asks, and says that the second one waits
  yield* TestClock.adjust(50)
  yield* Fiber.interrupt(second)
  yield* TestClock.adjust(500)
  assert.deepStrictEqual(first.pollUnsafe(), Exit.void)
  const asking = yield* background(as(client)(Lock.withLock(Effect.never, "b")))
  yield* TestClock.adjust(5)
  yield* background(Fiber.interrupt(asking))
  yield* TestClock.adjust(90)
  assert.isUndefined(asking.pollUnsafe())
  yield* TestClock.adjust(20)
  assert.isDefined(asking.pollUnsafe())
  server.delay = () => 0
  yield* TestClock.adjust("1 second")
})

type Section = (
  body: Effect.Effect<void>,
  permits?: number,
  of?: number
) => Effect.Effect<void, unknown, RedisLock.RedisLock>

const kinds: Record<string, Section> = {
  Semaphore: (body, permits = 1, of = 1) => Semaphore.withPermits(body, Semaphore.make("a", { permits: of }), permits),
  PermitSemaphore: (body, permits = 1, of = 1) =>
    PermitSemaphore.withPermits(body, PermitSemaphore.make("a", { permits: of }), permits)
}

/** A store to which the next request for permits, once that is to be late, arrives half a second after it was sent. */
const lateRequest = Effect.fnUntraced(function* (inner: LockStore.Store) {
  const context = yield* Effect.context<never>()
  const asked = yield* Deferred.make<void>()
  const late = {
    isNext: false,
    /** Lets time pass until that request is sent. */
    sent: Effect.gen(function* () {
      while (!Deferred.isDoneUnsafe(asked)) yield* TestClock.adjust(10)
    }),
    store: wrappedStore(inner, ({ operation, run }) => {
      if (!late.isNext || !operation.endsWith("/acquire")) return run()
      late.isNext = false
      return startable(() => {
        Deferred.doneUnsafe(asked, Effect.void)
        Effect.runForkWith(context)(Effect.ignore(Effect.delay(run(), 500)))
        return { cancel: () => {} }
      })
    })
  }
  return late
})

for (const [kind, section] of Object.entries(kinds)) {
  test(`A waiter for a ${kind} that is interrupted during a request leaves no place, though the request arrives behind what gives it up`, function* () {
    const server = yield* testStore()
    const late = yield* lateRequest(server.store)
    const client = yield* clientOf(late, { fallbackInterval: "2 seconds" })
    yield* background(as(yield* clientOf(server))(section(Effect.never)))
    const waiter = yield* background(as(client)(section(Effect.void)))
    const places = permitPlaces("a")[0]
    assert.strictEqual(yield* typeOfKeyIn(server.store, places), "zset")
    late.isNext = true
    yield* late.sent
    yield* Fiber.interrupt(waiter)
    assert.strictEqual(yield* typeOfKeyIn(server.store, places), "none")
    yield* TestClock.adjust(500)
    assert.strictEqual(yield* typeOfKeyIn(server.store, places), "zset")
    yield* TestClock.adjust("5 seconds")
    assert.strictEqual(yield* typeOfKeyIn(server.store, places), "none")
  })
}

for (const [kind, section] of Object.entries(kinds)) {
  for (const waits of [false, true]) {
    test(`A ${waits ? "waiter for" : "newcomer to"} a ${kind} that is interrupted during its request leaves no place, though another fiber of its process is served before the request arrives`, function* () {
      const server = yield* testStore()
      const late = yield* lateRequest(server.store)
      const [holder, client] = [yield* clientOf(server), yield* clientOf(late, { fallbackInterval: "1 second" })]
      const held = yield* sectionUntilTold((body) => as(holder)(section(body, 2, 2)))
      const first = waits ? yield* background(as(client)(section(Effect.void, 1, 2))) : undefined
      yield* background(as(client)(section(Effect.never, 2, 2)))
      yield* TestClock.adjust(10)
      late.isNext = true
      const interrupted = first ?? (yield* background(as(client)(section(Effect.void, 1, 2))))
      yield* late.sent
      yield* Fiber.interrupt(interrupted)
      yield* held.end
      yield* TestClock.adjust(10)
      const places = permitPlaces("a")[0]
      assert.strictEqual(yield* typeOfKeyIn(server.store, places), "none")
      yield* TestClock.adjust(490)
      assert.strictEqual(yield* typeOfKeyIn(server.store, places), "zset")
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* typeOfKeyIn(server.store, places), "none")
    })
  }
}

for (const [kind, section] of Object.entries(kinds)) {
  test(`A newcomer to a ${kind} that is interrupted leaves no place, though a waiter of its process that had asked before is served meanwhile`, function* () {
    const server = yield* testStore()
    let areLate = false
    const store = wrappedStore(server.store, ({ operation, run }) =>
      areLate && operation.endsWith("/acquire") ? Effect.tap(run(), () => Effect.sleep(500)) : run()
    )
    const [holder, client] = [yield* clientOf(server), yield* clientOf({ store })]
    const held = yield* sectionUntilTold((body) => as(holder)(section(body, 2, 2)))
    yield* background(as(client)(section(Effect.never, 2, 2)))
    yield* TestClock.adjust(10)
    areLate = true
    yield* held.end
    yield* TestClock.adjust(10)
    const newcomer = yield* background(as(client)(section(Effect.void, 1, 2)))
    yield* TestClock.adjust(10)
    const places = permitPlaces("a")[0]
    assert.strictEqual(yield* typeOfKeyIn(server.store, places), "zset")
    newcomer.interruptUnsafe()
    yield* TestClock.adjust(500)
    assert.strictEqual(yield* typeOfKeyIn(server.store, places), "none")
  })
}
