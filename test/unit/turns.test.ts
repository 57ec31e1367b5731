/**
 * How many turns in a row a process has of a lock that it hands over to itself.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Stream } from "effect"
import { Lock, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { as, clientOf, type Service, testStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

/** Fibers that enter a section again and again; notes who is inside. */
const takeTurns = Effect.fnUntraced(function* (
  who: string,
  service: Service,
  fibers: number,
  sectionMillis: number,
  entered: Array<string>,
  options?: Pick<Lock.AcquireOptions, "minHold">
) {
  const section = Effect.sync(() => entered.push(who)).pipe(Effect.andThen(Effect.sleep(sectionMillis)))
  for (let i = 0; i < fibers; i++) {
    yield* Effect.forkScoped(Effect.forever(Lock.withLock(section, "a", options)).pipe(as(service)), {
      startImmediately: true
    })
  }
})

/** How often a process was inside in a row, without the first and the last of its rows. */
const rowsOf = (who: string, entered: ReadonlyArray<string>): ReadonlyArray<number> => {
  const rows: Array<number> = []
  let length = 0
  for (const other of entered) {
    if (other === who) length++
    else if (length > 0) {
      rows.push(length)
      length = 0
    }
  }
  return rows.slice(1)
}

for (const [sectionMillis, turns, why] of [
  [100, 9, "eight that it has handed over to itself, and the first"],
  [0.25, 21, "as many as fit into five milliseconds, and the first"]
] as const) {
  test(`Sections of ${sectionMillis} ms: a process has ${turns} turns in a row, ${why}`, function* () {
    const server = yield* testStore()
    const entered: Array<string> = []
    yield* takeTurns("a", yield* clientOf(server), 2, sectionMillis, entered)
    yield* takeTurns("b", yield* clientOf(server), 1, sectionMillis, entered)
    while (entered.length < 150) yield* TestClock.adjust(sectionMillis)
    const rows = rowsOf("a", entered)
    assert.isAbove(rows.length, 3)
    assert.deepStrictEqual([...new Set(rows)], [turns])
  })
}

test("With a minHold that is longer than its sections a process has one turn, and then each other one that waits", function* () {
  const server = yield* testStore()
  const entered: Array<string> = []
  for (const [who, fibers] of [
    ["a", 3],
    ["b", 1],
    ["c", 1]
  ] as const) {
    yield* takeTurns(who, yield* clientOf(server), fibers, 90, entered, { minHold: 100 })
  }
  // so long that each of them has asked, and knows the lease
  for (let i = 0; i < 600; i++) yield* TestClock.adjust(10)
  assert.isAbove(entered.length, 45)
  for (let i = 3; i + 3 <= entered.length; i++) {
    assert.deepStrictEqual(entered.slice(i, i + 3).toSorted(), ["a", "b", "c"], entered.join(""))
  }
})

test("A reader that does not hear messages yet is let in before a writer of its process that asked later", function* () {
  const { store } = yield* testStore()
  const own = as(yield* clientOf({ store: { ...store, subscribe: () => Stream.never } }))
  const { readLock, writeLock } = ReadWriteLock.make("a")
  const entered: Array<string> = []
  const enter = (who: string, lock: Lock.Lock<RedisLock.RedisLock, any>) =>
    Effect.sync(() => entered.push(who)).pipe(
      Effect.andThen(Effect.sleep(10)),
      Lock.withLock(lock),
      own,
      background,
      Effect.andThen(TestClock.adjust(10))
    )
  const section = yield* sectionUntilTold((body) => own(Lock.withLock(body, writeLock)))
  yield* enter("reader", readLock)
  yield* enter("writer", writeLock)
  yield* section.end
  yield* TestClock.adjust(100)
  assert.deepStrictEqual(entered, ["reader", "writer"])
})

test("A process that nobody competes with loses no time when it has had its turns", function* () {
  const server = yield* testStore()
  const entered: Array<string> = []
  yield* takeTurns("a", yield* clientOf(server), 3, 100, entered)
  for (let i = 0; i < 40; i++) yield* TestClock.adjust(100)
  assert.strictEqual(entered.length, 41)
})

test("A release does not leave the lock to a waiter that has given up and is looking up who holds it", function* () {
  const server = yield* testStore()
  const own = as(yield* clientOf(server, { label: "own" }))
  const section = yield* sectionUntilTold((body) => own(Lock.withLock(body, "a")))
  const late = yield* background(own(Effect.exit(Lock.withLock(Effect.void, "a", { waitTime: "2 seconds" }))))
  const next = yield* background(own(Lock.withLock(Effect.void, "a")))
  server.delay = (operation) => (operation === "lock/inspect" ? 40 : 0)
  yield* TestClock.adjust("2 seconds")
  yield* section.end
  yield* TestClock.adjust(1)
  const [looks, isServed] = [late.pollUnsafe() === undefined, next.pollUnsafe() !== undefined]
  yield* TestClock.adjust("1 minute")
  assert.isTrue(Exit.isFailure(yield* Fiber.join(late)))
  assert.isTrue(looks && isServed, "the one behind it is served at once")
})
