/**
 * Labels of the clients of a quorum, on stores in memory, under virtual time.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { Lock, LockTimeout, type QuorumNotReached, type RedisLock, RedLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { expectWarning } from "../run/logs.ts"
import { as, clientOf, quorumOf, type Service, type TestStore, testStores } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

type AnyLock = string | Lock.Lock<RedisLock.RedisLock, QuorumNotReached>

/** Holds a lock until the end of the test; its label is told by then. */
const hold = Effect.fnUntraced(function* (lock: AnyLock, service: Service) {
  yield* Effect.forkScoped(Effect.never.pipe(Lock.withLock(lock), as(service)))
  yield* TestClock.adjust("5 seconds")
})

/** How a wait of two seconds ends. */
const timeoutOf = Effect.fnUntraced(function* (lock: AnyLock, service: Service) {
  const waiting = yield* Effect.forkChild(
    Effect.flip(Effect.void.pipe(Lock.withLock(lock, { waitTime: "2 seconds" }), as(service)))
  )
  yield* TestClock.adjust("3 seconds")
  const error = yield* Fiber.join(waiting)
  assert.instanceOf(error, LockTimeout)
  return error as LockTimeout
})

const labelKeys = ({ keys, operations }: TestStore) =>
  keys.filter((_, i) => operations[i] === "client/set_label").map(([key]) => key)

const quorumsOf = (stores: ReadonlyArray<TestStore>) =>
  Effect.all([quorumOf(stores, { label: "worker-3" }), quorumOf(stores, { label: "worker-4" })])

test("A timeout and inspect name the label of the quorum's client that holds the lock, and for how long", function* () {
  const [holder, other] = yield* Effect.flatMap(testStores(3), quorumsOf)
  yield* hold("a", holder)
  const { holders } = yield* Lock.inspect("a").pipe(as(other))
  assert.deepStrictEqual(
    holders.map(({ label, mode }) => [label, mode]),
    [["worker-3", "exclusive"]]
  )
  assert.approximately(Duration.toSeconds(holders[0]!.since!), 5, 0.2)
  const { holder: named, message } = yield* timeoutOf("a", other)
  assert.strictEqual(named?.label, "worker-3")
  assert.isAtLeast(Duration.toSeconds(named!.since!), 6.8)
  assert.match(message, /; held by worker-3 \([0-9a-f-]{36}:\d+\) for .+; its lease runs for /)
})

test("The label is known as long as a majority of the members is, whichever that is", function* () {
  const stores = yield* testStores(3)
  const [holder, other] = yield* quorumsOf(stores)
  stores[0]!.refuses = (operation) => operation === "client/set_label"
  yield* hold("a", holder)
  assert.deepStrictEqual(
    stores.map((store) => labelKeys(store).length),
    [0, 1, 1]
  )
  stores[2]!.isDown = true
  expectWarning(/^No wake-up signals from one server of the quorum/)
  // of the two that answer, only the second has the label
  assert.strictEqual((yield* timeoutOf("a", other)).holder?.label, "worker-3")
})

test("A client of a single member sees the label too", function* () {
  const stores = yield* testStores(3)
  const [holder] = yield* quorumsOf(stores)
  yield* hold("a", holder)
  const { holders } = yield* Lock.inspect("a").pipe(as(yield* clientOf(stores[1]!)))
  assert.deepStrictEqual(
    holders.map(({ label }) => label),
    ["worker-3"]
  )
})

test("A RedLock whose members differ in name and prefix stores its label under each member's prefix", function* () {
  const stores = yield* testStores(3)
  const redLock = (label: string) =>
    Effect.map(
      Effect.forEach(stores, (store, i) => clientOf(store, { label, keyPrefix: `p${i}:` })),
      (services) => RedLock.make(services.map((service, i) => Lock.provide(Lock.make(`lock${i}`), service)))
    )
  const [mine, others] = [yield* redLock("worker-3"), yield* redLock("worker-4")]
  const anybody = yield* clientOf(stores[0]!)
  yield* hold(mine, anybody)
  const keys = stores.map(labelKeys)
  for (const [i, [key]] of keys.entries())
    assert.match(key!, new RegExp(`^effect_redis_lock_client:\\{p${i}:[0-9a-f-]{36}\\}$`))
  assert.strictEqual((yield* timeoutOf(others, anybody)).holder?.label, "worker-3")
})
