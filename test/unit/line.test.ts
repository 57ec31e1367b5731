/**
 * The line of a process, wherever its fibers give way to each other.
 */
import { failure } from "../kit/exits.ts"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Schedule, Scheduler } from "effect"
import { TestClock } from "effect/testing"
import { Lock, SpinLock } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { pass } from "../kit/passTime.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { as, clientOf, storeWith } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

/** Below 3 Effect itself gets nowhere. */
const steps = Array.from({ length: 60 }, (_, i) => i + 3)

for (const [kind, lock] of Object.entries({ plain: Lock.make("a"), spin: SpinLock.make("a") })) {
  test(`Fibers that wait for the same lock all give up in time: ${kind}`, function* () {
    const [server, holder] = yield* storeWith({})
    yield* Lock.scoped("a").pipe(as(holder))
    for (const maxOps of steps) {
      const client = yield* clientOf(server)
      const waiters = yield* Effect.forEach([1, 2, 3, 4], () =>
        Lock.withLock(Effect.void, lock, { waitTime: 300 }).pipe(
          Lock.withOwner,
          as(client),
          Effect.provideService(Scheduler.MaxOpsBeforeYield, maxOps),
          Effect.forkChild
        )
      )
      yield* pass(0.6, 10)
      for (const waiter of waiters) {
        assert.isDefined(waiter.pollUnsafe(), `one still waits after ${maxOps} steps at a time`)
        const error = failure(yield* Fiber.await(waiter))
        assert.strictEqual(error._tag, "LockTimeout")
      }
    }
  })
}

for (const isFirst of [true, false]) {
  test(`A waiter behind one that spins with long pauses is served within two fallback intervals: ${isFirst ? "as it pauses" : "before it pauses"}`, function* () {
    const [, holder, client] = yield* storeWith({}, { fallbackInterval: "1 second" })
    const held = yield* sectionUntilTold((body) => as(holder)(Lock.withLock(body, "a", { leaseTime: "1 hour" })))
    const spinning = SpinLock.make("a", { schedule: Schedule.spaced("10 minutes") })
    yield* background(as(client)(Lock.withLock(Effect.void, spinning)))
    if (isFirst) yield* TestClock.adjust("5 seconds")
    const waiter = yield* background(as(client)(Lock.withLock(Effect.succeed("in"), "a")))
    yield* TestClock.adjust("3 seconds")
    yield* held.end
    yield* TestClock.adjust("2 seconds")
    assert.isDefined(waiter.pollUnsafe())
  })
}
