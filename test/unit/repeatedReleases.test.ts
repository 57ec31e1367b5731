/**
 * What a client that is connected again repeats of its releases, and what else it sends meanwhile.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Queue, Stream } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../kit/testStore.ts"

/** More than are under way at once. */
const many = Array.from({ length: 400 }, (_, i) => `lock ${i}`)

it.effect("After a reconnect nobody waits until all releases are repeated, and the latest are repeated first", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.scoped)
)
