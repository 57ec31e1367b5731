/**
 * Who of the fibers that wait in one process has the turn.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { until } from "../kit/eventually.ts"
import { runOperation } from "../kit/storeOperations.ts"

const waitsUntil = Number.POSITIVE_INFINITY

/** Waiters of one semaphore for these numbers of permits, in their order. */
const waitersFor = Effect.fnUntraced(function* (wanted: ReadonlyArray<number>) {
  const client = (yield* RedisLock.RedisLock) as unknown as LockClient
  const joined = yield* Effect.forEach(wanted, (permits) =>
    client.waitQueues.join("pool", "permit", { permits, waitsUntil })
  )
  const queue = joined[0]![0]
  assert.isTrue(joined.every(([other]) => other === queue))
  return { client, queue, waiters: joined.map(([, waiter]) => waiter) }
})

const over = Effect.provide(RedisLock.layerMemory)

it.effect("A waiter whose wait time ends before it sleeps does not sleep", () =>
  Effect.gen(function* () {
    const { client, queue, waiters } = yield* waitersFor([1, 1])
    const [first, second] = waiters
    assert.isTrue(first!.hasTurn)
    second!.ring()
    yield* second!.awaitTurn
    assert.isFalse(second!.hasTurn)
    for (const waiter of waiters) queue.leave(waiter)
    assert.strictEqual(client.waitQueues.size, 0)
  }).pipe(over)
)

it.effect(
  "The turn passes to the first waiter that the free permits are enough for, and else to the first of all",
  () =>
    Effect.gen(function* () {
      const { queue, waiters } = yield* waitersFor([5, 2, 1, 2])
      const holders = []
      for (const free of [2, 1, 4, 0, 5]) {
        queue.pass(free)
        holders.push(waiters.findIndex((waiter) => waiter.hasTurn))
        // who is to ask finds a signal; who is to sleep on finds none
        assert.strictEqual(Queue.takeUnsafe(queue.signals) !== undefined, free > 0)
      }
      assert.deepStrictEqual(holders, [1, 2, 1, 0, 0])
      for (const waiter of waiters) queue.leave(waiter)
    }).pipe(over)
)

it.effect(
  "A waiter that leaves with the turn passes it on to one that asks, and one that leaves without it to nobody",
  () =>
    Effect.gen(function* () {
      const { client, queue, waiters } = yield* waitersFor([1, 1, 1])
      queue.leave(waiters[1]!)
      assert.isTrue(waiters[0]!.hasTurn)
      assert.isUndefined(Queue.takeUnsafe(queue.signals))
      queue.leave(waiters[0]!)
      assert.isTrue(waiters[2]!.hasTurn)
      assert.strictEqual(yield* Queue.take(queue.signals), "signal")
      // twice does nothing
      queue.leave(waiters[0]!)
      assert.isTrue(waiters[2]!.hasTurn)
      queue.leave(waiters[2]!)
      assert.strictEqual(client.waitQueues.size, 0)
    }).pipe(over)
)

it.effect("A message that arrives during a request wakes the waiter that has the turn next", () =>
  Effect.gen(function* () {
    const { queue, waiters } = yield* waitersFor([5, 1])
    const [first, second] = waiters
    queue.pass(1)
    assert.strictEqual(yield* queue.sleep(second!), "signal")
    const sleeping = yield* Effect.forkChild(queue.sleep(first!), { startImmediately: true })
    queue.ask(second!)
    queue.signal()
    queue.pass(0)
    assert.strictEqual(yield* Fiber.join(sleeping), "signal")
    for (const waiter of waiters) queue.leave(waiter)
  }).pipe(over)
)

it.effect("A waiter for a latch that was told that it is open does not sleep, and needs no turn", () =>
  Effect.gen(function* () {
    const client = (yield* RedisLock.RedisLock) as unknown as LockClient
    const [queue, first] = yield* client.waitQueues.join("start", "latch", { waitsUntil })
    const [, second] = yield* client.waitQueues.join("start", "latch", { waitsUntil })
    second.tell(2)
    assert.isFalse(second.isServed)
    second.tell(0)
    assert.isUndefined(yield* queue.sleep(second))
    assert.isTrue(second.isServed && !second.hasTurn)
    for (const waiter of [first, second]) queue.leave(waiter)
  }).pipe(over)
)

it.effect(
  "A lock, permits and a latch of one name have queues of their own, and a writer waits with everybody else",
  () =>
    Effect.gen(function* () {
      const { waitQueues } = (yield* RedisLock.RedisLock) as unknown as LockClient
      const kinds = ["exclusive", "write", "read", "permit", "latch"] as const
      const joined = yield* Effect.forEach(kinds, (kind) => waitQueues.join("a", kind, { waitsUntil }))
      assert.strictEqual(waitQueues.size, 4)
      assert.strictEqual(joined[0]![0], joined[1]![0])
      for (const [queue, waiter] of joined) queue.leave(waiter)
      assert.strictEqual(waitQueues.size, 0)
    }).pipe(over)
)

it.live(
  "A queue that begins to listen is woken if the lock was handed over before, by a message that nobody heard",
  () =>
    Effect.gen(function* () {
      const client = (yield* RedisLock.RedisLock) as unknown as LockClient
      const { subscriptions } = client
      const channel = "redisson_lock__channel:{a}"
      const [own, places] = [`${channel}:${client.clientId}`, "effect_redis_lock_places:{a}"]
      const owner = client.nextOwner()
      const acquire = (owner: string) =>
        runOperation(client.store, "lock/acquire", ["a", "a", places], [owner, 10_000, 60_000, 0])
      const release = (owner: string) =>
        runOperation(client.store, "lock/release", ["a", channel, places, "others:{a}"], [owner, "PUBLISH", 2000])
      // kept from an earlier wait
      const channels = [own, `${channel}:ours`, channel]
      const earlier = channels.map((channel) => subscriptions.subscribe(channel, () => {}))
      yield* until("it listens", () => channels.every((channel) => subscriptions.messagesSeen(channel) !== undefined))
      yield* acquire("x:1")
      const seen = subscriptions.messagesSeen(channel, true)
      yield* acquire(owner)
      yield* release("x:1")
      yield* until("the message has come", () => subscriptions.messagesSeen(channel, true) !== seen)
      const [queue, waiter] = yield* client.waitQueues.join("a", "exclusive", { waitsUntil })
      queue.listen(channel, seen, "exclusive")
      assert.isDefined(Queue.takeUnsafe(queue.signals))
      for (const subscription of earlier) subscription.stop()
      queue.leave(waiter)
      yield* release(owner)
    }).pipe(over)
)
