/**
 * What it costs a client of a quorum that a member is down, and that member once it is back.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { Lock, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { metricsAboveZero, withOwnMetrics } from "../kit/metrics.ts"
import {
  as,
  clientLayer,
  quorumOf,
  type Service,
  serviceOf,
  type TestStore,
  testStore,
  testStores
} from "../kit/testStore.ts"
import { unreachable, wrappedStore } from "../kit/wrappedStore.ts"
import { fakeDriver } from "../kit/fakeDriver.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const names = Array.from({ length: 200 }, (_, i) => `lock ${i}`)

const unlabelled = { label: "" } as const

const releasesIn = ({ operations }: TestStore) => operations.filter((operation) => operation === "lock/release").length

/** Holds all locks until `meanwhile` is over, and then releases them. */
const holdAll = (service: Service, meanwhile: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const letGo = yield* Deferred.make<void>()
    const sections = yield* Effect.forEach(names, (name) =>
      background(as(service)(Lock.withLock(Deferred.await(letGo), name)))
    )
    yield* meanwhile
    yield* Deferred.succeed(letGo, undefined)
    for (const section of sections) yield* Fiber.join(section)
  })

/** Each of them is denied. */
const denials = (service: Service) =>
  Effect.gen(function* () {
    const asked = yield* Effect.forEach(names, () =>
      background(as(service)(Lock.withLockIfAvailable(Effect.void, "held")))
    )
    yield* TestClock.adjust("20 millis")
    for (const request of asked) assert.isTrue(Option.isNone(yield* Fiber.join(request)))
  })

test("Of a quorum of which only some servers are clusters, locks of different slots are not renewed together", function* () {
  const stores = yield* testStores(3)
  const renewed: Array<ReadonlyArray<string>> = []
  const clusters = stores.slice(1).map(({ store }) => ({
    store: {
      ...wrappedStore(store, ({ keys, operation, run }) => {
        if (operation === "lock/renew") renewed.push(keys)
        return run()
      }),
      slot: (key: string) => key.charCodeAt(0)
    }
  }))
  const run = as(yield* quorumOf([stores[0]!, ...clusters]))
  yield* run(Effect.all(["a", "b", "ab"].map((name) => Lock.scoped(name))))
  yield* TestClock.adjust("12 seconds")
  assert.sameDeepMembers(
    renewed.map((keys) => keys.toSorted()),
    [["a", "ab"], ["b"], ["a", "ab"], ["b"]]
  )
})

describe("a member of a quorum that is down", () => {
  for (const reason of ["NotConnected", "ConnectionLost"] as const) {
    test(`A member that fails (${reason}) is sent about one release a second, however many it is to be told of, and all of them within two seconds once it is back`, function* () {
      const stores = yield* testStores(3)
      const [, , third] = stores as [TestStore, TestStore, TestStore]
      third.reason = reason
      const [holder, service] = [yield* quorumOf(stores, unlabelled), yield* quorumOf(stores, unlabelled)]
      const held = yield* background(as(holder)(Lock.withLock(Effect.never, "held", { leaseTime: "1 hour" })))
      yield* holdAll(
        service,
        Effect.sync(() => {
          third.refuses = () => true
        })
      )
      yield* denials(service)
      const { asked } = third
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(third.asked - asked, 9)
      assert.isAtMost(third.asked - asked, 15)
      third.refuses = () => false
      yield* TestClock.adjust("2 seconds")
      for (const name of names) assert.isTrue(yield* third.isFree(name))
      const releases = releasesIn(third)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(releasesIn(third), releases)
      yield* Fiber.interrupt(held)
    })
  }

  test("What was denied while a member is not connected is not released anywhere", function* () {
    const stores = yield* testStores(3)
    const [holder, service] = [yield* quorumOf(stores, unlabelled), yield* quorumOf(stores, unlabelled)]
    yield* background(as(holder)(Lock.withLock(Effect.never, "held")))
    stores[2]!.isDown = true
    yield* denials(service)
    yield* TestClock.adjust("5 seconds")
    for (const store of stores) assert.strictEqual(releasesIn(store), 0)
    assert.strictEqual(stores[2]!.asked, 1 + names.length)
  })

  test("A release is sent once to each server that answers, also where one of them has lost the lock", function* () {
    const stores = yield* testStores(3)
    const [first, second, third] = stores as [TestStore, TestStore, TestStore]
    const section = Effect.andThen(
      second.delete("a"),
      Effect.sync(() => {
        third.isDown = true
      })
    )
    const released = yield* background(as(yield* quorumOf(stores, unlabelled))(Lock.withLock(section, "a")))
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(released.pollUnsafe(), Exit.void)
    assert.deepStrictEqual([releasesIn(first), releasesIn(second)], [1, 1])
    third.isDown = false
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual(releasesIn(third), 1)
    assert.isTrue(yield* third.isFree("a"))
  })

  it.effect("The metric of failures rises by about one a second while a member is down, however much is released", () =>
    Effect.gen(function* () {
      const driver = fakeDriver({ commandTimeoutMillis: 1000 })
      const layers = [clientLayer((yield* testStore()).store), clientLayer((yield* testStore()).store)]
      const down = Layer.provide(RedisLock.layer(unlabelled), driver)
      const service = yield* serviceOf(RedisLock.layerQuorum([...layers, down]))
      const errors = Effect.map(
        metricsAboveZero,
        (values) => values["redis_lock.store.errors error.type=NotConnected"] ?? 0
      )
      yield* holdAll(service, Effect.void)
      const before = yield* errors
      assert.isAtLeast(before, 2 * names.length)
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast((yield* errors) - before, 9)
      assert.isAtMost((yield* errors) - before, 15)
    }).pipe(Effect.scoped, withOwnMetrics)
  )

  test("A member that joins late is told once of each release since, and of none any more after that", function* () {
    expectWarning(/^One server of the quorum cannot be reached yet/)
    const [first, second, third] = (yield* testStores(3)) as [TestStore, TestStore, TestStore]
    let isUp = false
    const late = Layer.unwrap(
      Effect.suspend(() =>
        isUp ? Effect.succeed(clientLayer(third.store, unlabelled)) : Effect.fail(unreachable("connect", "server 3"))
      )
    )
    const layers = [first, second].map(({ store }) => clientLayer(store, unlabelled))
    const service = yield* serviceOf(RedisLock.layerQuorum([...layers, late]))
    yield* holdAll(service, Effect.void)
    isUp = true
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(third.asked, names.length)
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(third.asked, names.length)
  })

  test("A member that is away is told that a reader has left for as long as its longest hold would have lasted", function* () {
    const stores = yield* testStores(3)
    const [, , third] = stores as [TestStore, TestStore, TestStore]
    const { readLock } = ReadWriteLock.make("a")
    const [outer, inner] = [yield* Scope.make(), yield* Scope.make()]
    const enter = (leaseTime: "10 minutes" | "10 seconds", scope: Scope.Scope) =>
      Scope.provide(Lock.scoped(readLock, { leaseTime }), scope)
    yield* Effect.andThen(enter("10 minutes", outer), enter("10 seconds", inner)).pipe(
      Lock.withOwner,
      as(yield* quorumOf(stores, unlabelled))
    )
    third.isDown = true
    yield* Scope.close(outer, Exit.void)
    yield* Scope.close(inner, Exit.void)
    yield* TestClock.adjust("1 minute")
    assert.isFalse(yield* third.isFree("a"))
    third.isDown = false
    yield* TestClock.adjust("2 seconds")
    assert.isTrue(yield* third.isFree("a"))
  })
})

describe("a lock that all members of a quorum deny", () => {
  test("A denial waits for a member that answers a little later, and then nothing is left to release", function* () {
    const stores = yield* testStores(3)
    const [holder, service] = [yield* quorumOf(stores, unlabelled), yield* quorumOf(stores, unlabelled)]
    yield* background(as(holder)(Lock.withLock(Effect.never, "held")))
    stores.forEach((store, i) => (store.delay = (operation) => (operation === "lock/acquire" ? 1 + 2 * i : 0)))
    const asked = yield* background(as(service)(Lock.withLockIfAvailable(Effect.void, "held")))
    for (let passed = 0; passed < 10; passed++) yield* TestClock.adjust("1 millis")
    assert.isTrue(Option.isNone(yield* Fiber.join(asked)))
    for (const store of stores) assert.strictEqual(releasesIn(store), 0)
  })

  test("A denial by a majority does not wait for a member that is slower than the others by far", function* () {
    const stores = yield* testStores(3)
    const [holder, service] = [yield* quorumOf(stores, unlabelled), yield* quorumOf(stores, unlabelled)]
    yield* background(as(holder)(Lock.withLock(Effect.never, "held")))
    stores.forEach(
      (store, i) => (store.delay = (operation) => (operation === "lock/acquire" ? 10 + 500 * (i >> 1) : 0))
    )
    const asked = yield* background(as(service)(Lock.withLockIfAvailable(Effect.void, "held")))
    for (let passed = 0; passed < 25; passed++) yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(asked.pollUnsafe(), Exit.succeed(Option.none()))
  })
})
