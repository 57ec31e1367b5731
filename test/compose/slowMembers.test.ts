/**
 * A quorum some of whose members are slow.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Lock, QuorumNotReached } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { storeError } from "../kit/exits.ts"
import { as, quorumOf, type TestStore, testStores } from "../kit/testStore.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const lease = { watchdogLeaseTime: "4 seconds" } as const

/** Clients that close wait for their servers, and in real time. */
const hurry = (stores: ReadonlyArray<TestStore>) => {
  for (const store of stores) store.delay = () => 0
}

test("An acquisition waits for slow members while it needs them for a majority", function* () {
  const stores = yield* testStores(5)
  for (const store of stores.slice(0, 3)) store.delay = () => 700
  const section = Lock.withLock(Effect.void, "a", { waitTime: 0 })
  const running = yield* Effect.forkChild(as(yield* quorumOf(stores, lease))(section))
  yield* TestClock.adjust("10 seconds")
  yield* Fiber.join(running)
  hurry(stores)
})

test("Five clients that contend for a lock are not held up by two members of five that are slow", function* () {
  const stores = yield* testStores(5)
  let sections = 0
  for (const [i, store] of stores.entries()) store.delay = () => (i < 2 ? 900 : 1 + Math.random())
  const section = Effect.sync(() => sections++).pipe(Effect.andThen(Effect.sleep("50 millis")))
  const clients = []
  for (let i = 0; i < 5; i++) {
    const use = as(yield* quorumOf(stores, lease))
    const turn = Effect.exit(use(Lock.withLock(section, "a")))
    clients.push(yield* Effect.forkChild(Effect.forever(Effect.andThen(turn, Effect.sleep("5 millis")))))
  }
  for (let i = 0; i < 200; i++) yield* TestClock.adjust("50 millis")
  const inTime = sections
  hurry(stores)
  const ending = yield* Effect.forkChild(Fiber.interruptAll(clients))
  yield* TestClock.adjust("1 minute")
  yield* Fiber.join(ending)
  // about 130; about 80 if a split vote waits for the slow members for 100 ms, and 13 if for a second
  assert.isAbove(inTime, 105)
})

test("A waiter does not ask again and again while one of three servers is down and the others say who holds the lock", function* () {
  expectWarning(/^No wake-up signals from one server of the quorum/)
  const stores = yield* testStores(3)
  for (const store of stores) store.delay = () => 1 + Math.random()
  stores[2]!.isDown = true
  const [holder, waiter] = [yield* quorumOf(stores, lease), yield* quorumOf(stores, lease)]
  const holding = yield* Effect.forkChild(as(holder)(Lock.withLock(Effect.never, "a")))
  yield* TestClock.adjust("100 millis")
  const waiting = yield* Effect.forkChild(as(waiter)(Lock.withLock(Effect.void, "a")))
  yield* TestClock.adjust("10 seconds")
  const asked = stores[0]!.operations.filter((operation) => operation === "lock/acquire").length
  hurry(stores)
  const ending = yield* Effect.forkChild(Fiber.interruptAll([holding, waiting]))
  yield* TestClock.adjust("1 minute")
  yield* Fiber.join(ending)
  // two a second at most; 173 without waiting for the second answer
  assert.isBelow(asked, 60)
})

test("A waiter outlives a majority of servers that do not answer, whose failure is that they are late", function* () {
  expectWarning(/^Could not release in time/)
  const stores = yield* testStores(3)
  const use = as(yield* quorumOf(stores, lease))
  for (const store of stores.slice(1)) store.delay = () => 3_600_000
  const [waiting, asking] = yield* Effect.forEach([{}, { waitTime: 0 }], (options) =>
    Effect.forkChild(use(Effect.exit(Lock.withLock(Effect.succeed("in"), "a", options))))
  )
  yield* TestClock.adjust("10 seconds")
  const { cause, isTransient } = storeError(yield* Fiber.join(asking!))
  assert.isTrue(isTransient)
  assert.instanceOf(cause, QuorumNotReached)
  assert.deepStrictEqual(
    cause.failures.map(({ reason }) => reason),
    ["TimedOut", "TimedOut"]
  )
  hurry(stores)
  yield* TestClock.adjust("10 seconds")
  assert.deepStrictEqual(yield* Fiber.join(waiting!), Exit.succeed("in"))
})

test("A lock that one server keeps for itself keeps nobody out, although another one is slower than the rest", function* () {
  for (const keeper of [0, 1]) {
    const stores = yield* testStores(3)
    const others = ["a", "redisson_lock_token:{a}"]
    yield* runOperation(stores[keeper]!.store, "lock/acquire", others, ["somebody:1", 3_600_000, 3_600_000])
    for (const [i, store] of stores.entries()) store.delay = () => (i === 2 ? 50 : 1)
    const clients = yield* Effect.forEach([1, 2, 3], () => Effect.map(quorumOf(stores, lease), as))
    let sections = 0
    const section = Effect.sync(() => sections++).pipe(Lock.withLock("a"))
    const turns = yield* Effect.forEach(clients, (use) => Effect.forkChild(Effect.repeat(use(section), { times: 4 })))
    for (let passed = 0; passed < 400; passed++) yield* TestClock.adjust("25 millis")
    assert.strictEqual(sections, 15)
    for (const turn of turns) yield* Fiber.join(turn)
    hurry(stores)
  }
})
