/**
 * Releasing on a quorum of stores in memory, under virtual time: by the holder, by force, and on members that are away.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Context, Effect, Exit, Fiber, Option, Queue, Stream } from "effect"
import {
  FairLock,
  InvalidLockOptions,
  Lock,
  NonReentrantLock,
  ReadWriteLock,
  RedisLock,
  RedLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { loss } from "../kit/exits.ts"
import {
  as,
  clientLayer,
  clientOf,
  quorumOf,
  type Service,
  serviceOf,
  type TestStore,
  testStores
} from "../kit/testStore.ts"
import { replicatedStore } from "../kit/replicatedStore.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { startable } from "../kit/startable.ts"
import { runOperation, typeOfKeyIn } from "../kit/storeOperations.ts"
import { type Outcome, wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

/** A quorum's request that two members deny, and that the third one grants only after it was given up. */
const lateGrantLeavesNothing = (late: (run: () => Outcome) => Outcome) =>
  Effect.gen(function* () {
    const stores = yield* testStores(3)
    const [first, second, third] = stores as [TestStore, TestStore, TestStore]
    for (const { store } of [first, second]) {
      yield* runOperation(store, "lock/acquire", ["a", "a:token"], ["somebody:1", 60_000, 60_000])
    }
    const store = wrappedStore(third.store, ({ operation, run }) => (operation === "lock/acquire" ? late(run) : run()))
    const service = yield* quorumOf([first, second, { ...third, store }])
    const asked = yield* Effect.forkChild(
      Effect.exit(as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "1 hour", waitTime: 0 })))
    )
    yield* TestClock.adjust("501 millis")
    assert.isTrue(Exit.isFailure(yield* Fiber.join(asked)))
    assert.isFalse(yield* third.isFree("a"))
    yield* TestClock.adjust("5 seconds")
    assert.isTrue(yield* third.isFree("a"))
  })

describe("releasing a quorum's lock by force", () => {
  test("A force release that waits for a slow member does not take the lock from the waiter that got it meanwhile", function* () {
    const stores = yield* testStores(3)
    const holder = yield* quorumOf(stores)
    const service = yield* quorumOf(stores)
    yield* Effect.never.pipe(Lock.withLock("a"), as(holder), background)
    const section = yield* Effect.sleep("5 seconds").pipe(
      Effect.as("done"),
      Lock.withLock("a"),
      as(service),
      Effect.forkChild
    )
    yield* TestClock.adjust("10 millis")
    for (const [i, store] of stores.entries()) {
      store.delay = (operation) => (operation === "lock/force_release" ? (i === 2 ? 60_000 : 1) : 0)
    }
    const forced = yield* background(as(service)(Lock.forceRelease("a")))
    yield* TestClock.adjust("10 millis")
    assert.isUndefined(forced.pollUnsafe())
    assert.isTrue(yield* as(service)(Lock.isLocked("a")))
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(yield* Fiber.join(forced))
    assert.strictEqual(yield* Fiber.join(section), "done")
  })

  test("A fair lock is refused on a quorum, to acquire it and to release it by force, before any member is asked", function* () {
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores)
    for (const lock of [FairLock.make("a"), NonReentrantLock.make("a", { fair: true })]) {
      const refused = yield* Effect.flip(as(service)(Lock.withLock(Effect.void, lock)))
      const error = yield* Effect.flip(as(service)(Lock.forceRelease(lock)))
      assert.instanceOf(error, InvalidLockOptions)
      assert.deepStrictEqual(error, refused)
    }
    for (const store of stores) assert.deepStrictEqual(store.operations, [])
  })
})

describe("releasing a quorum's lock", () => {
  test("Releasing a quorum's lock is no loss if too few members are told at first and later forget it", function* () {
    const stores = yield* testStores(3)
    const service = yield* quorumOf(stores)
    stores[1]!.isDown = true
    const section = yield* Effect.sync(() => {
      stores[1]!.isDown = false
      stores[2]!.isDown = true
      return "done"
    }).pipe(Lock.withLock("a"), as(service), background)
    yield* TestClock.adjust("6 seconds")
    assert.strictEqual(yield* Fiber.join(section), "done")
  })

  test("A release is done when a majority confirms; a late member is told again until it answers", function* () {
    const stores = yield* testStores(3)
    const [first, second, third] = stores as [TestStore, TestStore, TestStore]
    const use = as(yield* quorumOf(stores, {}, { memberTimeout: 100 }))
    yield* use(
      Effect.sync(() => {
        third.delay = (operation) => (operation === "lock/release" ? 1000 : 0)
      }).pipe(Lock.withLock("a"))
    )
    // not a millisecond has passed
    assert.deepStrictEqual(yield* Effect.forEach(stores, (store) => store.isFree("a")), [true, true, false])
    assert.isTrue(yield* use(Effect.map(Lock.isLocked("a"), (isLocked) => !isLocked)))
    // given up after the member timeout, and never sent; then sent again
    yield* TestClock.adjust("999 millis")
    assert.isFalse(yield* third.isFree("a"))
    third.delay = () => 0
    yield* TestClock.adjust("2 seconds")
    assert.isTrue(yield* third.isFree("a"))
    for (const store of [first, second]) {
      assert.strictEqual(store.operations.filter((operation) => operation === "lock/release").length, 1)
    }
  })

  for (const [how, later] of [
    [
      "whose store says more of what was given up",
      (run: Effect.Effect<unknown>) => Effect.andThen(Effect.forkDetach(run), Effect.never)
    ],
    [
      // as drivers do
      "whose store says no more of it",
      (run: Effect.Effect<unknown>, context: Context.Context<never>) =>
        startable(() => {
          Effect.runForkWith(context)(run)
          return { cancel: () => {} }
        })
    ]
  ] as const) {
    it.effect(
      `A member that had not answered when the lock was denied is told again once the request can act no more: one ${how}`,
      () =>
        Effect.flatMap(Effect.context<never>(), (context) =>
          // it takes effect although nobody waits for the reply any more
          lateGrantLeavesNothing((run) => later(Effect.ignore(Effect.delay(run(), "500 millis")), context) as Outcome)
        )
    )
  }

  test("A request that was given up, but acted before the release, is not released once more", function* () {
    const stores = yield* testStores(3)
    const third = stores[2]!
    const mute = wrappedStore(third.store, ({ operation, run }) =>
      operation === "lock/acquire"
        ? startable(() => {
            // it acts at once, and its reply is still on its way when the lock is released
            Effect.runSync(run())
            return { cancel: () => {} }
          })
        : run()
    )
    const service = yield* quorumOf([stores[0]!, stores[1]!, { ...third, store: mute }])
    yield* as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "1 hour" }))
    assert.isTrue(yield* third.isFree("a"))
    const { length } = third.operations
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(third.operations.length, length)
  })

  test("A release is told to a member that comes back within the lease of the lock, even a long one", function* () {
    const stores = yield* testStores(3)
    const [, , third] = stores as [TestStore, TestStore, TestStore]
    const use = as(yield* quorumOf(stores))
    yield* use(
      Effect.sync(() => {
        third.isDown = true
      }).pipe(Lock.withLock("a", { leaseTime: "10 minutes" }))
    )
    yield* TestClock.adjust("5 minutes")
    assert.isFalse(yield* third.isFree("a"))
    third.isDown = false
    yield* TestClock.adjust("2 seconds")
    assert.isTrue(yield* third.isFree("a"))
  })

  for (const [kind, lock] of [
    ["a lock", Lock.make("a")],
    ["a read lock", ReadWriteLock.make("a").readLock],
    ["a write lock", ReadWriteLock.make("a").writeLock]
  ] as const) {
    test(`A member that is down when ${kind} is released is told later, for as long as the longest re-entry`, function* () {
      const stores = yield* testStores(3)
      const service = yield* quorumOf(stores, { watchdogLeaseTime: "2 seconds" })
      yield* Effect.sync(() => (stores[0]!.isDown = true)).pipe(
        Lock.withLock(lock, { leaseTime: "1 minute" }),
        Lock.withLock(lock),
        as(service)
      )
      yield* TestClock.adjust("20 seconds")
      assert.isFalse(yield* stores[0]!.isFree("a"))
      stores[0]!.isDown = false
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(yield* stores[0]!.isFree("a"))
    })
  }
})

test("A RedLock of quorums that is denied by each of them leaves nothing at the members that have granted it", function* () {
  const stores = yield* testStores(9)
  const quorums = yield* Effect.forEach([0, 3, 6], (first) => quorumOf(stores.slice(first, first + 3)))
  const red = RedLock.make(quorums.map((quorum) => Lock.provide(Lock.make("a"), quorum)))
  const [granting, denying] = [stores.filter((_, i) => i % 3 === 2), stores.filter((_, i) => i % 3 < 2)]
  for (const store of denying) yield* background(as(yield* clientOf(store))(Lock.withLock(Effect.never, "a")))
  assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, red)))
  yield* TestClock.adjust("1 second")
  for (const { isFree, operations } of granting) {
    assert.include(operations, "lock/acquire")
    assert.isTrue(yield* isFree("a"))
  }
})

describe("the place of a client whose writers wait on a quorum", () => {
  const { writeLock } = ReadWriteLock.make("a")
  const places = "effect_redis_lock_places:{a}"
  const slow = { fallbackInterval: "10 minutes", label: "" } as const
  const write = (service: Service) => background(as(service)(Lock.withLock(Effect.never, writeLock)))

  test("A writer that was interrupted during its request on a quorum takes no place from others of its client", function* () {
    const stores = yield* testStores(3)
    yield* write(yield* quorumOf(stores))
    yield* TestClock.adjust("10 millis")
    const service = yield* quorumOf(stores, slow)
    for (const store of stores) store.delay = (operation) => (operation === "write_lock/acquire" ? 50 : 0)
    const first = yield* write(service)
    yield* write(service)
    yield* TestClock.adjust("10 millis")
    for (const store of stores) store.delay = () => 0
    yield* background(Fiber.interrupt(first))
    // longer than the request may take effect
    yield* TestClock.adjust("20 seconds")
    const free = yield* Effect.forEach(stores, (store) => store.isFree(places))
    assert.isAtLeast(free.filter((isFree) => !isFree).length, 2, "a majority has its place")
  })

  test("A release that a member of a quorum is told of late takes no place from a writer that waits meanwhile", function* () {
    const stores = yield* testStores(3)
    const [, , third] = stores as [TestStore, TestStore, TestStore]
    yield* write(yield* quorumOf(stores))
    yield* TestClock.adjust("10 millis")
    const service = yield* quorumOf(stores, slow)
    const first = yield* write(service)
    yield* TestClock.adjust("1 second")
    third.refuses = (operation) => operation === "write_lock/release"
    yield* Fiber.interrupt(first)
    yield* write(service)
    yield* TestClock.adjust("1 second")
    const told = third.operations.length
    third.refuses = () => false
    // for a release that is sent again, and not so long that the writer asks again
    yield* TestClock.adjust("1200 millis")
    assert.deepStrictEqual(third.operations.slice(told), ["write_lock/release"])
    assert.isFalse(yield* third.isFree(places))
  })

  test("What was released of a quorum's lock is free after a failover at two of three members that forgets it", function* () {
    const members = [yield* replicatedStore, yield* replicatedStore, yield* replicatedStore]
    const [one, other] = [yield* quorumOf(members, { label: "" }), yield* quorumOf(members, { label: "" })]
    const section = yield* background(as(one)(Lock.withLock(Effect.sleep("2 seconds"), "a")))
    yield* TestClock.adjust("1 second")
    for (const { lag } of members) yield* lag
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(section)
    yield* members[0]!.failOver
    yield* members[2]!.failOver
    yield* TestClock.adjust("100 millis")
    const rival = yield* background(as(other)(Lock.withLock(Effect.void, "a", { waitTime: "1 second" })))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(rival.pollUnsafe(), Exit.void)
  })

  test("What a member of a quorum is told again after a reconnect takes no place from a writer that waits", function* () {
    const member = yield* replicatedStore
    // the writers do not hear that it was gone, and so do not ask again
    const heard = {
      ...member.store,
      subscribe: () => Stream.concat(Stream.make({ _tag: "Subscribed" as const }), Stream.never)
    }
    const stores = yield* testStores(2)
    const quorum = serviceOf(
      RedisLock.layerQuorum([heard, ...stores.map(({ store }) => store)].map((store) => clientLayer(store, slow)))
    )
    yield* write(yield* quorum)
    yield* TestClock.adjust("10 millis")
    const service = yield* quorum
    const first = yield* write(service)
    yield* TestClock.adjust("1 second")
    yield* Fiber.interrupt(first)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* typeOfKeyIn(member.store, places), "none")
    yield* write(service)
    yield* TestClock.adjust("1 second")
    yield* member.failOver
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* typeOfKeyIn(member.store, places), "zset")
  })
})

describe("a release on a quorum whose members are all cut off at first", () => {
  /** Ends a section while nobody can be reached, and connects all members again; some of them are sent the release again at once. */
  const reconnected = Effect.fnUntraced(function* (
    use: (services: ReadonlyArray<Service>) => (body: Effect.Effect<void>) => Effect.Effect<void, unknown>,
    meanwhile: (servers: ReadonlyArray<TestStore>) => Effect.Effect<unknown>,
    repeatedAt = [0, 1, 2]
  ) {
    const servers = yield* testStores(3)
    const reconnects = yield* Effect.all(servers.map(() => Queue.unbounded<void>()))
    const stores = servers.map((server, i) => ({
      store: { ...server.store, reconnects: Stream.fromQueue(reconnects[i]!) }
    }))
    const services = yield* Effect.forEach(stores, (store) => clientOf(store, { watchdogLeaseTime: "1 minute" }))
    const section = use([...services, yield* quorumOf(stores, { watchdogLeaseTime: "1 minute" })])
    const { end } = yield* sectionUntilTold(section)
    yield* TestClock.adjust("1 second")
    for (const server of servers) server.isDown = true
    const ending = yield* background(Effect.exit(end))
    yield* TestClock.adjust(200)
    yield* meanwhile(servers)
    for (const server of servers) server.isDown = false
    for (const i of repeatedAt) Queue.offerUnsafe(reconnects[i]!, undefined)
    yield* TestClock.adjust("6 seconds")
    return yield* Fiber.join(ending)
  })

  const uses: Record<string, Parameters<typeof reconnected>[0]> = {
    "a client of three servers": (services) => (body) => as(services[3]!)(Lock.withLock(body, "a")),
    "a RedLock of other names": (services) => (body) =>
      Lock.withLock(
        body,
        RedLock.make(services.slice(0, 3).map((service, i) => Lock.provide(Lock.make(`a${i}`), service)))
      )
  }
  for (const [what, use] of Object.entries(uses)) {
    it.effect(
      `A release that every member of a quorum is sent again after a reconnect, before its next try, is no loss: ${what}`,
      () =>
        Effect.map(
          reconnected(use, () => Effect.void),
          (exit) => assert.deepStrictEqual(exit, Exit.void)
        ).pipe(Effect.scoped)
    )

    it.effect(
      `A release is no loss if a reconnect gives the lock back at one member, and the next try at another one, though the third had lost it: ${what}`,
      () =>
        Effect.map(
          reconnected(use, (servers) => Effect.andThen(servers[2]!.delete("a"), servers[2]!.delete("a2")), [0]),
          (exit) => assert.deepStrictEqual(exit, Exit.void)
        ).pipe(Effect.scoped)
    )

    it.effect(
      `A loss at a majority is none the less one, although the third member is sent the release again: ${what}`,
      () =>
        Effect.map(
          reconnected(use, (servers) =>
            Effect.forEach([0, 1], (i) => Effect.andThen(servers[i]!.delete("a"), servers[i]!.delete(`a${i}`)))
          ),
          (exit) => assert.strictEqual(loss(exit).reason, "NotOwner")
        ).pipe(Effect.scoped)
    )
  }
})
