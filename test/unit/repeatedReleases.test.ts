/**
 * What a client that is connected again repeats of its releases, and what else it sends meanwhile.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Stream } from "effect"
import { Lock, MultiLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { forkHolder, sectionUntilTold } from "../kit/sections.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

/** More than are under way at once. */
const many = Array.from({ length: 400 }, (_, i) => `lock ${i}`)

test("After a reconnect nobody waits until all releases are repeated, and the latest are repeated first", function* () {
  const reconnects = yield* Queue.unbounded<void>()
  const watched = yield* testStore()
  const service = yield* clientOf({ store: { ...watched.store, reconnects: Stream.fromQueue(reconnects) } })
  yield* Effect.forEach(many, (name) =>
    Effect.andThen(TestClock.adjust(1), as(service)(Lock.withLock(Effect.void, name)))
  )
  const before = watched.operations.length
  // a server that is slow to answer
  watched.delay = () => 10
  Queue.offerUnsafe(reconnects, undefined)
  yield* TestClock.adjust(5)
  const section = yield* Effect.forkChild(as(service)(Lock.withLock(Effect.void, "another")))
  yield* TestClock.adjust("1 minute")
  yield* Fiber.join(section)
  const sent = watched.operations.slice(before)
  const locks = watched.keys.slice(before).map(([lock]) => lock!)
  const acquired = sent.indexOf("lock/acquire")
  assert.isAtMost(acquired, 200)
  assert.strictEqual(locks[acquired], "another")
  const repeated = locks.filter((lock, i) => sent[i] === "lock/release" && lock !== "another")
  assert.strictEqual(repeated[0], many.at(-1))
  assert.deepStrictEqual(repeated.toSorted(), many.toSorted())
})

test("A release of a MultiLock that left a member to its own client is repeated with a notification to others", function* () {
  const reconnects = yield* Queue.unbounded<void>()
  const server = yield* testStore()
  const own = as(yield* clientOf({ store: { ...server.store, reconnects: Stream.fromQueue(reconnects) } }))
  const other = as(yield* clientOf(server))
  const first = yield* sectionUntilTold((body) => own(Lock.withLock(body, MultiLock.make(["a", "b"]))))
  const next = yield* forkHolder((stay: (acquired: void) => Effect.Effect<void>) =>
    own(Lock.withLock(stay(undefined), "a"))
  )
  yield* TestClock.adjust(50)
  yield* first.end
  yield* next.entered
  yield* next.letGo
  yield* Fiber.join(next.fiber)
  const released = server.operations.indexOf("multi_lock/release")
  const [, , , leftTo] = server.args[released]!
  const askedAs = server.args.filter((_, i) => server.operations[i] === "lock/acquire").map(([owner]) => owner)
  assert.include(askedAs, leftTo, "the first release left it to the next section")
  // the server that has taken over has not heard of the releases
  const acquired = server.operations.indexOf("multi_lock/acquire")
  yield* runOperation(server.store, "multi_lock/acquire", server.keys[acquired]!, server.args[acquired])
  const waiting = yield* background(other(Lock.withLock(Effect.void, "a")))
  yield* TestClock.adjust(100)
  assert.isUndefined(waiting.pollUnsafe())
  Queue.offerUnsafe(reconnects, undefined)
  yield* TestClock.adjust(100)
  assert.deepStrictEqual(waiting.pollUnsafe(), Exit.void)
})
