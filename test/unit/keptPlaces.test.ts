/**
 * The place in Redis of a waiter whose request was never run: it is kept for the next request, or given back. One that nobody knows of would
 * be handed the lock, and nobody would take it.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { as, clientOf, type Service, testStore } from "../kit/testStore.ts"
import { placesIn } from "../kit/storeOperations.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

const patient = { fallbackInterval: "1 hour", label: "" } as const
const asking = { fallbackInterval: "1 second", label: "" } as const
const places = "effect_redis_lock_places:{a}"

test("A waiter whose request is refused unread while a release leaves it the lock leaves no place behind", function* () {
  const server = yield* testStore()
  let isRefused = false
  const store = wrappedStore(server.store, ({ fail, operation, run }) => {
    if (!isRefused || operation !== "lock/acquire") return run()
    isRefused = false
    return Effect.sleep(500).pipe(Effect.andThen(Effect.suspend(() => fail("NotEnoughReplicas"))))
  })
  const [ours, others] = [yield* clientOf({ store }, asking), yield* clientOf(server, patient)]
  const entered: Array<string> = []
  const enter = (who: string, client: Service, millis: number) =>
    Effect.sync(() => entered.push(who)).pipe(
      Effect.andThen(Effect.sleep(millis)),
      Lock.withLock("a"),
      as(client),
      background
    )
  yield* enter("first", ours, 3200)
  yield* enter("second", ours, 1000)
  // it has asked, and has a place
  yield* TestClock.adjust(1500)
  const last = yield* enter("other", others, 10)
  yield* TestClock.adjust(1000)
  isRefused = true
  yield* TestClock.adjust(1500)
  assert.isFalse(isRefused)
  assert.deepStrictEqual(entered, ["first", "second"])
  yield* TestClock.adjust(1000)
  assert.deepStrictEqual(entered, ["first", "second", "other"])
  yield* Fiber.join(last)
  assert.isTrue(yield* server.isFree("a"))
})

test("A reader whose request is refused unread while that of another of its client takes a place gives up its own", function* () {
  const { readLock, writeLock } = ReadWriteLock.make("a")
  const server = yield* testStore()
  const requests: Array<{ readonly owner: unknown; readonly answer: (how: "late" | "refused") => void }> = []
  let holdsBack = 0
  const store = wrappedStore(server.store, ({ args, fail, operation, run }) => {
    if (operation !== "read_lock/acquire" || holdsBack === 0) return run()
    holdsBack--
    return Effect.flatMap(
      Effect.callback<"late" | "refused">((resume) => {
        requests.push({ owner: args[0], answer: (how) => resume(Effect.succeed(how)) })
      }),
      (answer) => (answer === "late" ? run() : fail("NotEnoughReplicas"))
    )
  })
  const [ours, others] = [yield* clientOf({ store }, asking), yield* clientOf(server, patient)]
  yield* background(as(others)(Lock.withLock(Effect.never, writeLock)))
  yield* TestClock.adjust(10)
  const read = background(as(ours)(Lock.withLock(Effect.void, readLock)))
  holdsBack = 1
  const first = yield* read
  const second = yield* read
  // the second takes a place, and asks with it
  yield* TestClock.adjust(500)
  holdsBack = 1
  yield* TestClock.adjust(1000)
  const [late, refused] = requests
  late!.answer("late")
  yield* TestClock.adjust(10)
  assert.sameMembers(yield* placesIn(server.store, places), [late!.owner, refused!.owner])
  refused!.answer("refused")
  yield* TestClock.adjust(10)
  assert.deepStrictEqual(yield* placesIn(server.store, places), [late!.owner])
  yield* Fiber.interruptAll([first, second])
  yield* TestClock.adjust(10)
  assert.isTrue(yield* server.isFree(places))
})

test("A waiter that is interrupted while it looks what there is under the name gives up its place", function* () {
  const server = yield* testStore()
  let isOther = false
  const back = Latch.makeUnsafe(false)
  const store = wrappedStore(server.store, ({ fail, operation, run }) => {
    if (!isOther) return run()
    if (operation === "lock/acquire") return fail("WrongType")
    return operation === "lock/found" ? Effect.andThen(back.await, fail()) : run()
  })
  const [ours, others] = [yield* clientOf({ store }, asking), yield* clientOf(server, patient)]
  yield* background(as(others)(Lock.withLock(Effect.never, "a")))
  yield* TestClock.adjust(10)
  const waiting = yield* background(as(ours)(Lock.withLock(Effect.void, "a")))
  yield* TestClock.adjust(10)
  assert.isFalse(yield* server.isFree(places))
  isOther = true
  yield* TestClock.adjust(1000)
  assert.isUndefined(waiting.pollUnsafe())
  yield* background(Fiber.interrupt(waiting))
  yield* TestClock.adjust(10)
  assert.isDefined(waiting.pollUnsafe())
  assert.isTrue(yield* server.isFree(places))
  back.openUnsafe()
})
