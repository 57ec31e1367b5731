/**
 * Who of the fibers that wait in one process has the turn.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { until } from "../kit/eventually.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { testInMemory as test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const waitsUntil = Number.POSITIVE_INFINITY

/** Waiters of one semaphore for these numbers of permits, in their order. */
const waitersFor = Effect.fnUntraced(function* (wanted: ReadonlyArray<number>) {
  const client = (yield* RedisLock.RedisLock) as unknown as LockClient
  const joined = yield* Effect.forEach(wanted, (permits) =>
    client.lines.join("pool", "permit", { kind: "semaphore", permits, waitsUntil })
  )
  const line = joined[0]![0]
  assert.isTrue(joined.every(([other]) => other === line))
  return { client, line, waiters: joined.map(([, waiter]) => waiter) }
})

test("A waiter whose wait time ends before it sleeps does not sleep", function* () {
  const { lines, now } = (yield* RedisLock.RedisLock) as unknown as LockClient
  const [line, first] = yield* lines.join("pool", "permit", { kind: "semaphore", waitsUntil })
  const [, second] = yield* lines.join("pool", "permit", { kind: "semaphore", waitsUntil: now() })
  assert.isTrue(first.hasTurn)
  yield* line.sleep(second)
  assert.isFalse(second.hasTurn)
  for (const waiter of [first, second]) line.leave(waiter)
  assert.strictEqual(lines.size, 0)
})

test("The turn passes to the first waiter that the free permits are enough for, and else to the first of all", function* () {
  const { line, waiters } = yield* waitersFor([5, 2, 1, 2])
  const holders = []
  for (const free of [2, 1, 4, 0, 5]) {
    line.asked(waiters.find((waiter) => waiter.hasTurn)!)
    line.answered(-1, true)
    line.pass(free)
    holders.push(waiters.findIndex((waiter) => waiter.hasTurn))
    assert.strictEqual(line.isDue, free > 0)
  }
  assert.deepStrictEqual(holders, [1, 2, 1, 0, 0])
  for (const waiter of waiters) line.leave(waiter)
})

test("Permits are kept for a waiter only for as long as it has itself been the oldest", function* () {
  const { line, waiters } = yield* waitersFor([2, 2, 1])
  yield* TestClock.adjust("1500 millis")
  assert.isUndefined(line.firstFor(1), "it is kept for the oldest")
  line.leave(waiters[0]!)
  assert.strictEqual(line.firstFor(1), waiters[2])
  yield* TestClock.adjust("1500 millis")
  assert.isUndefined(line.firstFor(1))
  for (const waiter of waiters) line.leave(waiter)
})

test("A waiter that leaves with the turn passes it on to one that asks, and one that leaves without it to nobody", function* () {
  const { client, line, waiters } = yield* waitersFor([1, 1, 1])
  line.leave(waiters[1]!)
  assert.isTrue(waiters[0]!.hasTurn)
  line.asked(waiters[0]!)
  line.leave(waiters[0]!)
  assert.isTrue(waiters[2]!.hasTurn && line.isDue)
  // twice does nothing
  line.leave(waiters[0]!)
  assert.isTrue(waiters[2]!.hasTurn)
  line.leave(waiters[2]!)
  assert.strictEqual(client.lines.size, 0)
})

test("A message that arrives during a request wakes the waiter that has the turn next", function* () {
  const { line, waiters } = yield* waitersFor([5, 1])
  const [first, second] = waiters
  line.asked(first!)
  line.answered(-1, true)
  line.pass(1)
  assert.isTrue(second!.hasTurn && line.isDue)
  const sleeping = yield* background(line.sleep(first!))
  line.asked(second!)
  line.changed()
  line.answered(-1, true)
  line.pass(0)
  yield* Fiber.join(sleeping)
  assert.isTrue(first!.hasTurn && line.isDue)
  for (const waiter of waiters) line.leave(waiter)
})

test("A waiter for a latch that was told that it is open does not sleep, and needs no turn", function* () {
  const client = (yield* RedisLock.RedisLock) as unknown as LockClient
  const [line, first] = yield* client.lines.join("start", "latch", { kind: "latch", waitsUntil })
  const [, second] = yield* client.lines.join("start", "latch", { kind: "latch", waitsUntil })
  second.tell(2)
  assert.strictEqual(second.count, 2)
  second.tell(0)
  yield* line.sleep(second)
  assert.isFalse(second.hasTurn)
  for (const waiter of [first, second]) line.leave(waiter)
})

test("A lock, permits and a latch of one name have lines of their own, and a writer waits with everybody else", function* () {
  const { lines } = (yield* RedisLock.RedisLock) as unknown as LockClient
  const kinds = ["exclusive", "write", "read", "permit", "latch"] as const
  const joined = yield* Effect.forEach(kinds, (kind) => lines.join("a", kind, { kind, waitsUntil }))
  assert.strictEqual(lines.size, 4)
  assert.strictEqual(joined[0]![0], joined[1]![0])
  for (const [line, waiter] of joined) line.leave(waiter)
  assert.strictEqual(lines.size, 0)
})

it.live(
  "A line that begins to listen is woken if the lock was handed over before, by a message that nobody heard",
  () =>
    Effect.gen(function* () {
      const client = (yield* RedisLock.RedisLock) as unknown as LockClient
      const { subscriptions } = client
      const channel = "redisson_lock__channel:{a}"
      const [own, places] = [`${channel}:${client.clientId}`, "effect_redis_lock_places:{a}"]
      const owner = client.nextOwner()
      const acquire = (owner: string) =>
        runOperation(client, "lock/acquire", ["a", "a", places], [owner, 10_000, 60_000, 0])
      const release = (owner: string) =>
        runOperation(client, "lock/release", ["a", channel, places, "others:{a}"], [owner, "PUBLISH", 2000])
      // kept from an earlier wait
      const channels = [own, `${channel}:ours`, channel]
      const earlier = channels.map((channel) => subscriptions.subscribe(channel, () => {}))
      yield* until("it listens", () => channels.every((channel) => subscriptions.messagesSeen(channel) !== undefined))
      yield* acquire("x:1")
      const seen = subscriptions.messagesSeen(channel, true)
      yield* acquire(owner)
      yield* release("x:1")
      yield* until("the message has come", () => subscriptions.messagesSeen(channel, true) !== seen)
      const [line, waiter] = yield* client.lines.join("a", "exclusive", {
        kind: "reentrant",
        waitsUntil,
        hasAsked: true
      })
      line.answered(10_000, true)
      assert.isFalse(line.isDue)
      line.listen(channel, seen, "exclusive")
      assert.isTrue(line.isDue)
      for (const stop of earlier) stop()
      line.leave(waiter)
      yield* release(owner)
    }).pipe(Effect.provide(RedisLock.layerMemory))
)

test("The turn that was reserved for a request passes to a waiter that asks if that request is taken back", function* () {
  const { lines } = (yield* RedisLock.RedisLock) as unknown as LockClient
  lines.begin("a", "exclusive")
  const [line, waiter] = yield* lines.join("a", "exclusive", { kind: "reentrant", waitsUntil })
  assert.isFalse(waiter.hasTurn)
  lines.settle("a", "exclusive", false)
  assert.isTrue(waiter.hasTurn && line.isDue)
  line.leave(waiter)
})

test("A waiter that gets the turn when the request before the line was granted sleeps, and not without an end", function* () {
  const { lines } = (yield* RedisLock.RedisLock) as unknown as LockClient
  lines.begin("a", "exclusive")
  const [line, waiter] = yield* lines.join("a", "exclusive", { kind: "reentrant", waitsUntil })
  lines.settle("a", "exclusive", true)
  assert.isTrue(waiter.hasTurn && !line.isDue)
  const sleeping = yield* background(line.sleep(waiter))
  yield* TestClock.adjust("2 seconds")
  yield* Fiber.join(sleeping)
  assert.isTrue(line.isDue)
  line.leave(waiter)
})

for (const [kind, withPermit] of [
  ["Semaphore", (permits?: number) => Semaphore.withPermits(Effect.void, Semaphore.make("a", { permits }), 1)],
  [
    "PermitSemaphore",
    (permits?: number) => PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make("a", { permits }))
  ]
] as const) {
  test(`A waiter that says how many permits its ${kind} begins with creates it, though one that does not say so waits before it`, function* () {
    const before = yield* background(withPermit())
    yield* TestClock.adjust("1 second")
    assert.isUndefined(before.pollUnsafe())
    const behind = yield* background(withPermit(1))
    yield* TestClock.adjust("1 second")
    for (const fiber of [before, behind]) assert.deepStrictEqual(fiber.pollUnsafe(), Exit.void)
  })
}
