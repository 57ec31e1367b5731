/**
 * What a majority of stores in memory grants, under virtual time: how long it is valid, and its fencing tokens.
 */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { FencedLock, Lock, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, quorumOf, testStore, testStores } from "../kit/testStore.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { test } from "../kit/test.ts"

const year2026 = Date.UTC(2026, 0, 1)

describe("fencing tokens of a quorum", () => {
  const grant = (lock: string | Lock.Lock<RedisLock.RedisLock>) =>
    Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock))

  test("Fencing tokens of a quorum do not run ahead of the clocks when clients take turns", function* () {
    yield* TestClock.setTime(year2026)
    const stores = yield* testStores(3)
    const clients = [yield* quorumOf(stores), yield* quorumOf(stores)]
    let last = 0n
    for (let i = 0; i < 200; i++) {
      const token = yield* as(clients[i % 2]!)(grant("a"))
      assert.isTrue(token > last)
      last = token
    }
    assert.isBelow(Number(last) - year2026 * 1000, 5000)
  })

  test("Fencing tokens of one name on a quorum do not affect those of other names, however high they are", function* () {
    yield* TestClock.setTime(year2026)
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores)
    const far = 8_000_000_000_000_000
    yield* runOperation(stores[0]!.store, "lock/raise_token", ["far", "redisson_lock_token:{far}"], [far, 60_000])
    for (let i = 0; i < 5; i++) assert.isTrue((yield* as(service)(grant("far"))) > BigInt(far))
    assert.isBelow(Number(yield* as(service)(grant("near"))) - year2026 * 1000, 2_000_000)
  })

  test("A fenced lock on a quorum has its own tokens even if a plain lock has left one", function* () {
    yield* TestClock.setTime(year2026)
    const stores = [yield* testStore(), yield* testStore(1000), yield* testStore(2000)]
    const service = yield* quorumOf(stores)
    const tokens = [yield* as(service)(grant("a"))]
    for (const store of stores) {
      tokens.push(yield* as(service)(grant(FencedLock.make("a"))))
      store.isDown = true
      tokens.push(yield* as(service)(grant(FencedLock.make("a"))))
      store.isDown = false
    }
    assert.deepStrictEqual(
      tokens,
      [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1))
    )
    for (const { store } of stores) {
      const [, token] = (yield* runOperation(store, "lock/inspect", ["a", "redisson_lock_token:{a}"])) as [
        number,
        string
      ]
      assert.isTrue(BigInt(token) >= tokens[0]!)
    }
  })
})

describe("the validity of a quorum's lock", () => {
  test("The validity of a quorum's lock is the lease less the elapsed time, the drift and 2 ms", function* () {
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores, {}, { memberTimeout: "5 seconds" })
    // the majority is there after a second
    stores[1]!.delay = (operation) => (operation === "lock/acquire" ? 1000 : 0)
    stores[2]!.delay = (operation) => (operation === "lock/acquire" ? 2000 : 0)
    const asked = yield* Effect.forkChild(
      as(service)(Effect.scoped(Effect.flatMap(Lock.scoped("a", { leaseTime: "10 seconds" }), (h) => h.remaining)))
    )
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(Duration.toMillis(yield* Fiber.join(asked)), 10_000 - 1000 - (100 + 2))
  })

  test("A quorum's lock without validity fails, and is released on all members, even on late ones", function* () {
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores, {}, { memberTimeout: "1 minute" })
    for (const store of stores) store.delay = (operation) => (operation === "lock/acquire" ? 4990 : 0)
    stores[2]!.delay = (operation) => (operation === "lock/acquire" ? 8000 : 0)
    const asked = yield* Effect.forkChild(
      Effect.flip(as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "5 seconds", waitTime: 0 })))
    )
    yield* TestClock.adjust("4991 millis")
    const error = yield* Fiber.join(asked)
    assert.strictEqual(error._tag, "LockStoreError")
    assert.include(error.message, "too late")
    // there it would have stayed for another 5 seconds
    for (const store of stores.slice(0, 2)) {
      assert.isTrue(yield* store.isFree("a"))
      assert.include(store.operations, "lock/release")
    }
    yield* TestClock.adjust("4 seconds")
    assert.isTrue(yield* stores[2]!.isFree("a"))
  })

  test("A majority of renewals keeps a quorum's lock; errors of a minority are no loss", function* () {
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores)
    const section = yield* Effect.never.pipe(Lock.withLock("a"), as(service), Effect.forkChild)
    yield* TestClock.adjust(1)
    for (let i = 0; i < 6; i++) {
      // each time another one cannot be reached for one renewal
      stores.forEach((store, j) => (store.isDown = j === i % 3))
      yield* TestClock.adjust("10 seconds")
      stores.forEach((store) => (store.isDown = false))
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(section.pollUnsafe())
    }
    stores.forEach((store, j) => (store.isDown = j < 2))
    yield* TestClock.adjust("31 seconds")
    const error = yield* Effect.flip(Fiber.join(section))
    assert.strictEqual(error._tag === "LockLost" ? error.reason : error._tag, "RenewalFailed")
    stores.forEach((store) => (store.isDown = false))
    yield* TestClock.adjust("1 minute")
  })

  test("A quorum's lock is lost at once when a majority says that it is somebody else's or free", function* () {
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores)
    const section = yield* Effect.never.pipe(Lock.withLock("a"), as(service), Effect.forkChild)
    yield* TestClock.adjust(1)
    yield* stores[0]!.delete("a")
    yield* TestClock.adjust("30 seconds")
    assert.isUndefined(section.pollUnsafe())
    yield* stores[1]!.delete("a")
    yield* TestClock.adjust("10 seconds")
    const error = yield* Effect.flip(Fiber.join(section))
    assert.strictEqual(error._tag === "LockLost" ? error.reason : error._tag, "NotOwner")
    assert.isTrue(yield* stores[2]!.isFree("a"))
  })
})
