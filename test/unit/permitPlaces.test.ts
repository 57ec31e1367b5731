/**
 * The place of a process among those that wait for permits, while several of its fibers wait.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { PermitSemaphore, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { permitPlaces, semaphoreChannel } from "../../packages/core/dist/internal/store/keys.js"
import { listenTo } from "../kit/storeOperations.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { noting, wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const pool = Semaphore.make("pool", { permits: 1 })
const forOneMinute = Semaphore.withPermits(Effect.sleep("1 minute"), pool, 1)

/** A permit that another process holds, and two that will wait for it. */
const site = Effect.gen(function* () {
  const [server, service] = yield* storeWith({ fallbackInterval: "10 minutes" })
  const holder = yield* Effect.forkChild(as(yield* clientOf(server))(Semaphore.withPermits(Effect.never, pool, 1)))
  yield* TestClock.adjust("1 second")
  const count = (operation: string) => server.operations.filter((other) => other === operation).length
  return { count, holder, server, wait: Effect.forkChild(as(service)(forOneMinute)) }
})

test("The last fiber that gives up waiting for permits gives up the place of its process, though another was served", function* () {
  const { count, holder, wait } = yield* site
  yield* wait
  const last = yield* wait
  yield* TestClock.adjust("1 second")
  yield* Fiber.interrupt(holder)
  yield* TestClock.adjust("1 second")
  const before = count("semaphore/leave")
  yield* Fiber.interrupt(last)
  assert.strictEqual(count("semaphore/leave"), before + 1)
})

test("A fiber that begins to wait during the request of another has a place as soon as that one is served", function* () {
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
})

test("A fiber whose first request crosses one of its process for more permits hears of a permit that becomes free", function* () {
  const server = yield* testStore()
  const many = Semaphore.make("pool", { permits: 4 })
  const hold = (permits: number) =>
    Effect.flatMap(clientOf(server), (client) =>
      background(as(client)(Semaphore.withPermits(Effect.never, many, permits)))
    )
  const one = yield* hold(1)
  yield* hold(3)
  const client = yield* clientOf(server, { fallbackInterval: "10 minutes" })
  const wait = (permits: number) => background(as(client)(Semaphore.withPermits(Effect.void, many, permits)))
  const first = yield* wait(4)
  yield* wait(4)
  yield* TestClock.adjust("500 millis")
  server.delay = (operation) => (operation === "semaphore/acquire" ? 100 : 0)
  const small = yield* wait(1)
  yield* TestClock.adjust("50 millis")
  yield* Fiber.interrupt(first)
  yield* TestClock.adjust("200 millis")
  assert.isUndefined(small.pollUnsafe())
  yield* Fiber.interrupt(one)
  yield* TestClock.adjust("300 millis")
  assert.isDefined(small.pollUnsafe(), "it has had its permit")
})

for (const [what, wanted] of [
  ["for more permits than there are", 4],
  ["that must wait for permits held for long", 3]
] as const) {
  test(`A request ${what} gives the other fibers of its process no advantage`, function* () {
    const server = yield* testStore()
    const three = PermitSemaphore.make("pool", { permits: 3 })
    const [mine, others] = [yield* clientOf(server), yield* clientOf(server)]
    const sections = { mine: 0, others: 0 }
    const loop = (whose: "mine" | "others") =>
      Effect.sync(() => void sections[whose]++).pipe(
        Effect.andThen(Effect.sleep("100 millis")),
        PermitSemaphore.withPermits(three, 1),
        Effect.forever,
        as(whose === "mine" ? mine : others),
        Effect.forkChild
      )
    yield* Effect.forkChild(as(others)(PermitSemaphore.withPermits(Effect.never, three, 2)))
    yield* loop("mine")
    yield* TestClock.adjust("10 millis")
    yield* Effect.forkChild(as(mine)(PermitSemaphore.withPermits(Effect.void, three, wanted)))
    yield* TestClock.adjust("10 millis")
    yield* loop("mine")
    yield* loop("mine")
    yield* loop("others")
    // no permits are kept from the 8th to the 16th second
    for (let i = 0; i < 150; i++) yield* TestClock.adjust("100 millis")
    assert.isAtLeast(sections.others, (sections.mine + sections.others) / 4, `of ${sections.mine + sections.others}`)
  })
}

test("A fiber that waits for permits counts for no longer than it does, however long others have waited in vain", function* () {
  const { holder, server } = yield* site
  const order: Array<string> = []
  const clients = { mine: yield* clientOf(server), other: yield* clientOf(server) }
  const wait = (who: "mine" | "other") =>
    Effect.sync(() => void order.push(who)).pipe(
      Effect.andThen(Effect.sleep("1 second")),
      Semaphore.withPermits(pool, 1),
      as(clients[who]),
      Effect.forkChild
    )
  yield* Effect.forkChild(as(clients.mine)(Semaphore.withPermits(Effect.void, pool, 2)))
  yield* TestClock.adjust("1 minute")
  yield* wait("other")
  yield* TestClock.adjust("10 seconds")
  yield* wait("mine")
  yield* TestClock.adjust("5 seconds")
  yield* Fiber.interrupt(holder)
  yield* TestClock.adjust("5 seconds")
  assert.deepStrictEqual(order, ["other", "mine"])
})

test("A request for permits that fails for good, after it was denied, leaves no place behind", function* () {
  const [server, holder] = yield* storeWith({})
  yield* background(as(holder)(Semaphore.withPermits(Effect.never, pool, 1)))
  // Redis has run it, and refuses something at its end
  const store = wrappedStore(server.store, ({ fail, operation, run }) =>
    operation === "semaphore/acquire" ? Effect.andThen(run(), fail("NoPermission")) : run()
  )
  const [places] = permitPlaces("pool")
  const service = yield* clientOf({ store })
  const asking = yield* background(Effect.flip(as(service)(forOneMinute)))
  yield* TestClock.adjust("1 second")
  const error = yield* Fiber.join(asking)
  assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "NoPermission")
  assert.isTrue(yield* server.isFree(places!), "nobody has a place")
})

test("A process that waits does not ask when only clients without places and an older place are told of a permit", function* () {
  const { holder, server, wait } = yield* site
  // as Redisson's clients do
  yield* listenTo(server.store, semaphoreChannel("pool"))
  yield* wait
  yield* TestClock.adjust("1 second")
  let asked = 0
  const store = wrappedStore(
    server.store,
    noting(({ operation }) => void (operation === "semaphore/acquire" && asked++))
  )
  yield* Effect.forkChild(as(yield* clientOf({ store }, { fallbackInterval: "10 minutes" }))(forOneMinute))
  yield* TestClock.adjust("1 second")
  const before = asked
  assert.isAbove(before, 0)
  yield* Fiber.interrupt(holder)
  yield* TestClock.adjust("1 second")
  assert.strictEqual(asked, before)
})

test("A place that was given up while Redis was silent is not taken from fibers that have begun to wait since", function* () {
  const { holder, server } = yield* site
  let isSilent = true
  const store = wrappedStore(server.store, ({ fail, run }) =>
    Effect.suspend(() => (isSilent ? fail("ConnectionLost") : run()))
  )
  const service = yield* clientOf({ store }, { fallbackInterval: "10 minutes" })
  const wait = background(as(service)(Semaphore.withPermits(Effect.never, pool, 1)))
  const first = yield* wait
  yield* TestClock.adjust("1 second")
  yield* Fiber.interrupt(first)
  isSilent = false
  const [second, third] = [yield* wait, yield* wait]
  // longer than the request of the first may take effect, and than pauses between attempts to give up its place
  yield* TestClock.adjust("20 seconds")
  const [places] = permitPlaces("pool")
  assert.isFalse(yield* server.isFree(places!), "it has a place")
  yield* Fiber.interrupt(holder)
  yield* TestClock.adjust("10 millis")
  assert.strictEqual(yield* as(service)(Semaphore.availablePermits(pool)), 0, "it was told, and has its permit")
  yield* Fiber.interrupt(third)
  yield* TestClock.adjust("10 seconds")
  assert.isTrue(yield* server.isFree(places!), "the last one has given it up")
  yield* Fiber.interrupt(second)
})
