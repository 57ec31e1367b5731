/**
 * In which order the commands of a release go out that leaves the lock to a waiter of its process, and what follows if it arrives late.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Latch, Scheduler } from "effect"
import { Lock, MultiLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { test } from "../kit/test.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

/** Has a fiber give way to the others before its next step. */
class GivingWay extends Scheduler.MixedScheduler {
  giver: Fiber.Fiber<unknown, unknown> | undefined
  /** Called when it does. */
  meanwhile: () => void = () => {}
  isDue = false

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (!this.isDue || fiber !== this.giver) return super.shouldYield(fiber)
    this.isDue = false
    this.meanwhile()
    return true
  }
}

const kinds = { Lock: Lock.make("a"), MultiLock: MultiLock.make(["a", "b"]) }

for (const [title, held] of Object.entries(kinds)) {
  /** A section ends whose fiber gives way as soon as its release has been made, while a fiber of the same process waits. */
  const setUp = Effect.gen(function* () {
    const server = yield* testStore()
    const scheduler = new GivingWay()
    let isEnding = false
    const store = wrappedStore(server.store, ({ operation, run }) => {
      if (isEnding && operation.endsWith("/release")) {
        isEnding = false
        scheduler.isDue = true
      }
      return run()
    })
    const service = yield* clientOf({ store }, { label: "" })
    const section = yield* sectionUntilTold((body) =>
      Lock.withLock(body, held).pipe(as(service), Effect.provideService(Scheduler.Scheduler, scheduler))
    )
    scheduler.giver = section.fiber
    const waiter = yield* Effect.succeed("served").pipe(Lock.withLock("a"), as(service), background)
    const end = Effect.gen(function* () {
      server.operations.length = 0
      server.args.length = 0
      isEnding = true
      yield* section.end
      // a waiter that came too early asks again later
      yield* TestClock.adjust(1)
      assert.isFalse(isEnding || scheduler.isDue, "the fiber has not given way")
    })
    return { end, scheduler, server, waiter }
  })

  test(`A release that leaves the lock to a waiter of its process is sent before that waiter asks: ${title}`, function* () {
    const { end, server, waiter } = yield* setUp
    yield* end
    assert.deepStrictEqual(
      server.operations.map((operation) => operation.split("/")[1]),
      ["release", "acquire", "release"]
    )
    assert.strictEqual(yield* Fiber.join(waiter), "served")
  })

  test(`A release that leaves the lock to a waiter of its process is sent before what gives it back when that waiter leaves: ${title}`, function* () {
    const { end, scheduler, server, waiter } = yield* setUp
    scheduler.meanwhile = () => waiter.interruptUnsafe()
    yield* end
    yield* Fiber.await(waiter)
    assert.isTrue(yield* server.isFree("a"), "the lock is kept for nobody")
    const [[, ...released], [owner]] = server.args as [ReadonlyArray<unknown>, ReadonlyArray<unknown>]
    assert.include(released, owner)
  })
}

/** A section has ended, and its release reaches the server only behind what the waiter of its process has sent. */
const lateRelease = Effect.gen(function* () {
  const server = yield* testStore()
  const arrival = Latch.makeUnsafe(false)
  let isFirst = true
  const store = wrappedStore(server.store, ({ operation, run }) => {
    if (operation !== "lock/release" || !isFirst) return run()
    isFirst = false
    return Effect.andThen(arrival.await, Effect.suspend(run))
  })
  const service = yield* clientOf({ store }, { label: "" })
  // a client that closes waits for its releases
  yield* Effect.addFinalizer(() => arrival.open)
  const section = yield* sectionUntilTold((body) => body.pipe(Lock.withLock("a"), as(service)))
  const waiter = yield* Effect.succeed("served").pipe(Lock.withLock("a"), as(service), background)
  server.operations.length = 0
  yield* Effect.forkChild(section.end, { startImmediately: true })
  yield* TestClock.adjust(1)
  assert.deepStrictEqual([...new Set(server.operations)], ["lock/acquire"], "the waiter has asked, and was denied")
  return { server, waiter, arrive: Effect.andThen(arrival.open, TestClock.adjust(1)) }
})

test("A waiter that was denied because the release that leaves the lock to it came late asks again at once", function* () {
  const { arrive, waiter } = yield* lateRelease
  yield* arrive
  assert.strictEqual(waiter.pollUnsafe()?._tag, "Success")
})

test("A lock that a late release leaves to a waiter that has left is free", function* () {
  const { arrive, server, waiter } = yield* lateRelease
  waiter.interruptUnsafe()
  yield* TestClock.adjust(1)
  yield* arrive
  assert.isTrue(yield* server.isFree("a"))
})
