/**
 * A quorum of stores in memory, under virtual time.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Option, Stream } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  LockStore,
  MultiLock,
  NonReentrantLock,
  QuorumNotReached,
  ReadWriteLock,
  RedisLock,
  RedLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientLayer, clientOf, quorumOf, type TestStore, testStore, testStores } from "../kit/testStore.ts"
import { runOperation } from "../kit/storeOperations.ts"

const year2026 = Date.UTC(2026, 0, 1)
const count = (operations: ReadonlyArray<string>, operation: string) =>
  operations.filter((other) => other === operation).length

describe("waiting for a quorum's lock", () => {
  it.effect("A wait for a quorum's lock does not loop tightly when a member has lost the holder's share", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const options = { fallbackInterval: "1 second" } as const
      const holder = yield* quorumOf(stores, options)
      const letGo = yield* Deferred.make<void>()
      const held = yield* Deferred.await(letGo).pipe(Lock.withLock("a"), as(holder), Effect.forkChild)
      yield* TestClock.adjust(1)
      yield* stores[2]!.delete("a")
      const waiters = yield* Effect.forEach([1, 2], () =>
        Effect.flatMap(quorumOf(stores, options), (service) =>
          Effect.succeed("in").pipe(Lock.withLock("a"), as(service), Effect.forkChild)
        )
      )
      yield* TestClock.adjust("5 seconds")
      // once per waiter and interval, and not whenever one of them gives the third member back
      const asked = count(stores[0]!.operations, "lock/acquire")
      assert.isAbove(asked, 5)
      assert.isBelow(asked, 2 * 8)
      yield* Deferred.succeed(letGo, undefined)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(held)
      for (const waiter of waiters) assert.strictEqual(yield* Fiber.join(waiter), "in")
      for (const store of stores) assert.isTrue(yield* store.isFree("a"))
    })
  )

  it.effect("A writer that waits for a quorum's readers asks rarely, whichever reader each member names", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const { writeLock } = ReadWriteLock.make("rw")
      // as if three readers had asked in another order everywhere
      const readers = ["x:1", "y:2", "z:3"]
      for (const [i, { store }] of stores.entries()) {
        for (let j = 0; j < readers.length; j++) {
          const owner = readers[(i + j) % readers.length]!
          yield* runOperation(
            store,
            "read_lock/acquire",
            ["rw", "redisson_lock_token:{rw}", `{rw}:${owner}:rwlock_timeout:1`, "redisson_rwlock_writers:{rw}"],
            [owner, 60_000, "", 0]
          )
        }
      }
      const service = yield* quorumOf(stores)
      yield* Effect.void.pipe(Lock.withLock(writeLock), as(service), Effect.forkChild)
      yield* TestClock.adjust("5 seconds")
      assert.isBelow(count(stores[0]!.operations, "write_lock/acquire"), 10)
    })
  )
})

describe("releasing a quorum's lock by force", () => {
  it.effect(
    "A force release that waits for a slow member does not take the lock from the waiter that got it meanwhile",
    () =>
      Effect.gen(function* () {
        const stores = yield* testStores(3)
        const holder = yield* quorumOf(stores)
        const service = yield* quorumOf(stores)
        yield* Effect.never.pipe(Lock.withLock("a"), as(holder), Effect.forkChild({ startImmediately: true }))
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
        const forced = yield* Effect.forkChild(as(service)(Lock.forceRelease("a")), { startImmediately: true })
        yield* TestClock.adjust("10 millis")
        assert.isUndefined(forced.pollUnsafe())
        assert.isTrue(yield* Effect.map(as(service)(Lock.inspect("a")), Option.isSome))
        yield* TestClock.adjust("10 seconds")
        assert.isTrue(yield* Fiber.join(forced))
        assert.strictEqual(yield* Fiber.join(section), "done")
      }).pipe(Effect.scoped)
  )

  it.effect("A force release takes the lock from a holder of the same client", () =>
    Effect.gen(function* () {
      const service = yield* quorumOf(yield* testStores(3))
      const section = yield* Effect.never.pipe(Lock.withLock("a"), as(service), Effect.flip, Effect.forkChild)
      yield* TestClock.adjust(1)
      assert.isTrue(yield* as(service)(Lock.forceRelease("a")))
      const lost = yield* Fiber.join(section)
      assert.isTrue(lost._tag === "LockLost" && lost.reason === "NotOwner")
    }).pipe(Effect.scoped)
  )
})

describe("re-entering a quorum's read lock", () => {
  it.effect("A member where the release of an inner hold may still act does not count for a reader's re-entry", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const { readLock } = ReadWriteLock.make("rw")
      const enter = Effect.void.pipe(Lock.withLock(readLock, { waitTime: 0 }))
      const section = Effect.gen(function* () {
        stores[0]!.refuses = (operation) => operation === "read_lock/remove_hold"
        stores[0]!.reason = "ConnectionLost"
        yield* enter
        stores[0]!.refuses = () => false
        stores[2]!.isDown = true
        const early = yield* Effect.flip(enter)
        // as long as a command lives
        yield* Effect.sleep("2 seconds")
        yield* enter
        return early._tag
      })
      const reading = yield* section.pipe(Lock.withLock(readLock), as(yield* quorumOf(stores)), Effect.forkChild)
      for (let passed = 0; passed < 50; passed++) yield* TestClock.adjust(100)
      assert.strictEqual(yield* Fiber.join(reading), "LockStoreError")
    })
  )
})

describe("fencing tokens of a quorum", () => {
  const grant = (lock: string | Lock.Lock<RedisLock.RedisLock>) =>
    Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock))

  it.effect("Fencing tokens of a quorum do not run ahead of the clocks when clients take turns", () =>
    Effect.gen(function* () {
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
  )

  it.effect("Fencing tokens of one name on a quorum do not affect those of other names, however high they are", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(year2026)
      const stores = yield* testStores(3)
      const service = yield* quorumOf(stores)
      const far = 8_000_000_000_000_000
      yield* runOperation(stores[0]!.store, "lock/raise_token", ["far", "redisson_lock_token:{far}"], [far, 60_000])
      for (let i = 0; i < 5; i++) assert.isTrue((yield* as(service)(grant("far"))) > BigInt(far))
      assert.isBelow(Number(yield* as(service)(grant("near"))) - year2026 * 1000, 2_000_000)
    })
  )

  it.effect("A fenced lock on a quorum has its own tokens even if a plain lock has left one", () =>
    Effect.gen(function* () {
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
  )
})

describe("several locks of a quorum", () => {
  it.effect("Several locks of a quorum are acquired all or none, and are lost with one of them", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const [mine, others] = [as(yield* quorumOf(stores)), as(yield* quorumOf(stores))]
      const both = MultiLock.make([Lock.make("a"), Lock.make("b")])
      // a stranger to whatever is held here
      const got = (lock: string) =>
        others(Lock.withOwner(Effect.map(Effect.scoped(Lock.tryScoped(lock)), Option.isSome)))
      stores[0]!.isDown = true
      yield* mine(
        Lock.withLock(
          Effect.gen(function* () {
            assert.deepStrictEqual([yield* got("a"), yield* got("b"), yield* got("c")], [false, false, true])
          }),
          both
        )
      )
      yield* others(
        Lock.withLock(
          Effect.gen(function* () {
            assert.isTrue(Option.isNone(yield* mine(Lock.withLockIfAvailable(Effect.void, both))))
            assert.isFalse(yield* mine(Lock.isLocked("a")))
          }),
          "b"
        )
      )
      const section = yield* Effect.never.pipe(Lock.withLock(both), mine, Effect.forkChild)
      yield* TestClock.adjust(1)
      for (const store of stores.slice(1)) yield* store.delete("b")
      yield* TestClock.adjust("10 seconds")
      const lost = yield* Effect.flip(Fiber.join(section))
      assert.strictEqual(lost._tag === "LockLost" ? lost.lock : lost._tag, "b")
      for (const store of stores.slice(1)) assert.isTrue(yield* store.isFree("a"))
    })
  )
})

describe("releasing a quorum's lock", () => {
  it.effect("Releasing a quorum's lock is no loss if too few members are told at first and later forget it", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const service = yield* quorumOf(stores)
      stores[1]!.isDown = true
      const section = yield* Effect.sync(() => {
        stores[1]!.isDown = false
        stores[2]!.isDown = true
        return "done"
      }).pipe(Lock.withLock("a"), as(service), Effect.forkChild({ startImmediately: true }))
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual(yield* Fiber.join(section), "done")
    })
  )

  it.effect("A release is done when a majority confirms; a late member is told again until it answers", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const [first, second, third] = stores as [TestStore, TestStore, TestStore]
      const use = as(yield* quorumOf(stores, {}, { memberTimeout: 100 }))
      yield* use(
        Lock.withLock(
          Effect.sync(() => {
            third.delay = (operation) => (operation === "lock/release" ? 1000 : 0)
          }),
          "a"
        )
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
  )

  it.effect("A release is told to a member that comes back within the lease of the lock, even a long one", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const [, , third] = stores as [TestStore, TestStore, TestStore]
      const use = as(yield* quorumOf(stores))
      yield* use(
        Lock.withLock(
          Effect.sync(() => {
            third.isDown = true
          }),
          "a",
          { leaseTime: "10 minutes" }
        )
      )
      yield* TestClock.adjust("5 minutes")
      assert.isFalse(yield* third.isFree("a"))
      third.isDown = false
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(yield* third.isFree("a"))
    })
  )
})

describe("the validity of a quorum's lock", () => {
  it.effect("The validity of a quorum's lock is the lease less the elapsed time, the drift and 2 ms", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const service = yield* quorumOf(stores, {}, { driftFactor: 0.1, memberTimeout: "5 seconds" })
      // the majority is there after a second
      stores[1]!.delay = (operation) => (operation === "lock/acquire" ? 1000 : 0)
      stores[2]!.delay = (operation) => (operation === "lock/acquire" ? 2000 : 0)
      const asked = yield* Effect.forkChild(
        as(service)(Effect.scoped(Effect.flatMap(Lock.scoped("a", { leaseTime: "10 seconds" }), (h) => h.remaining)))
      )
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(Duration.toMillis(yield* Fiber.join(asked)), 10_000 - 1000 - (1000 + 2))
    })
  )

  it.effect("A quorum's lock without validity fails, and is released on all members, even on late ones", () =>
    Effect.gen(function* () {
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
  )

  it.effect("A majority of renewals keeps a quorum's lock; errors of a minority are no loss", () =>
    Effect.gen(function* () {
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
    })
  )

  it.effect("A quorum's lock is lost at once when a majority says that it is somebody else's or free", () =>
    Effect.gen(function* () {
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
  )
})

describe("the options of a quorum", () => {
  it.effect("The options of a quorum are checked before any command", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const services = yield* Effect.forEach(stores, (store) => clientOf(store))
      const members = services.map((service) => Lock.provide(Lock.make("a"), service))
      const bad: ReadonlyArray<RedLock.RedLockOptions> = [
        { driftFactor: -0.1 },
        { driftFactor: 0.5 },
        { driftFactor: Number.NaN },
        { memberTimeout: 0 },
        { memberTimeout: -1 },
        { memberTimeout: "Infinity" },
        { retryDelay: Number.NaN },
        { leaseTime: 0 },
        { waitTime: -1 }
      ]
      for (const options of bad) {
        const error = yield* Effect.flip(Lock.withLock(Effect.void, RedLock.make(members, options)))
        assert.strictEqual(error._tag, "InvalidLockOptions", JSON.stringify(options))
      }
      const layers = stores.map(({ store }) => clientLayer(store))
      const built = yield* Effect.flip(Effect.scoped(Layer.build(RedisLock.layerQuorum(layers, { driftFactor: 1 }))))
      assert.strictEqual(built._tag, "InvalidLockOptions")
      const none = yield* Effect.flip(Effect.scoped(Layer.build(RedisLock.layerQuorum<never, never>([]))))
      assert.strictEqual(none._tag, "InvalidLockOptions")
      const prefixes = [clientLayer(stores[0]!.store), clientLayer(stores[1]!.store, { keyPrefix: "other:" })]
      const mixed = yield* Effect.flip(Effect.scoped(Layer.build(RedisLock.layerQuorum(prefixes))))
      assert.include(mixed.message, "keyPrefix")
      for (const lock of [
        RedLock.make<never, never>([]),
        RedLock.make([...members.slice(0, 2), Lock.provide(FairLock.make("a"), services[2]!)]),
        RedLock.make([members[0]!, Lock.provide(ReadWriteLock.make("a").readLock, services[1]!)])
      ]) {
        assert.strictEqual((yield* Effect.flip(Lock.withLock(Effect.void, lock)))._tag, "InvalidLockOptions")
      }
      const fair = [FairLock.make("a"), NonReentrantLock.make("a", { fair: true })]
      const quorum = yield* quorumOf(stores)
      for (const lock of fair) {
        const error = yield* Effect.flip(
          as(quorum)(Lock.withLock(Effect.void, lock as Lock.Lock<RedisLock.RedisLock, any>))
        )
        assert.strictEqual(error._tag, "InvalidLockOptions")
      }
      assert.deepStrictEqual(
        stores.flatMap(({ operations }) => operations),
        []
      )
    })
  )
})

describe("the members of a quorum", () => {
  it.effect("A member of a quorum whose store breaks down counts as failed at once, with the reason", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const use = as(yield* quorumOf(stores))
      const breakDown = ({ store }: TestStore) =>
        Object.assign(store, { run: () => Effect.die(new Error("the wires have burnt through")) })
      breakDown(stores[2]!)
      assert.strictEqual(yield* use(Lock.withLock(Effect.succeed("done"), "a")), "done")
      breakDown(stores[1]!)
      const refused = yield* Effect.forkChild(
        Effect.flip(use(Lock.withLock(Effect.succeed("done"), "a", { waitTime: 0 })))
      )
      // what may have been granted is taken back for so long before it is told
      yield* TestClock.adjust(500)
      const error = yield* Fiber.join(refused)
      const cause = error._tag === "LockStoreError" ? error.cause : undefined
      assert.instanceOf(cause, QuorumNotReached)
      assert.deepStrictEqual(
        cause.failures.map(({ member }) => member),
        ["member 2", "member 3"]
      )
      for (const { message } of cause.failures) assert.include(message, "the wires have burnt through")
    })
  )

  it.effect("The members of a quorum are refused if one of them is given twice", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(2)
      const [a, b] = [yield* clientOf(stores[0]!), yield* clientOf(stores[1]!)]
      const member = (service: typeof a) => Lock.provide(Lock.make("a"), service)
      const error = yield* Effect.flip(Lock.withLock(Effect.void, RedLock.make([member(a), member(b), member(a)])))
      assert.strictEqual(error._tag, "InvalidLockOptions")
      assert.deepStrictEqual(
        stores.flatMap(({ operations }) => operations),
        []
      )
    })
  )

  it.effect("The members of a quorum may be services of different prefixes", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const services = yield* Effect.forEach(stores, (store, i) => clientOf(store, { keyPrefix: `app${i}:` }))
      const { readLock, writeLock } = ReadWriteLock.make("rw")
      for (const lock of [Lock.make("a"), readLock, writeLock]) {
        const red = RedLock.make(
          services.map((service) => Lock.provide(lock as Lock.Lock<RedisLock.RedisLock, any>, service))
        )
        const free = Effect.forEach(stores, (store, i) => store.isFree(`app${i}:${lock.name}`))
        assert.deepStrictEqual(yield* Lock.withLock(free, red), [false, false, false])
        assert.deepStrictEqual(yield* free, [true, true, true])
      }
    })
  )

  it.effect("A quorum has as many servers as layers, even if a layer is given more than once", () =>
    Effect.gen(function* () {
      let built = 0
      const member = RedisLock.layerFromStore().pipe(
        Layer.provide(
          Layer.effect(
            LockStore.LockStore,
            Effect.map(testStore(), ({ store }) => {
              built++
              return store
            })
          )
        )
      )
      yield* Effect.scoped(Layer.build(RedisLock.layerQuorum([member, member, member])))
      assert.strictEqual(built, 3)
    })
  )
})

describe("releasing a quorum's lock", () => {
  for (const [kind, lock] of [
    ["a lock", Lock.make("a")],
    ["a read lock", ReadWriteLock.make("a").readLock],
    ["a write lock", ReadWriteLock.make("a").writeLock]
  ] as const) {
    it.effect(`A member that is down when ${kind} is released is told later, for as long as the longest re-entry`, () =>
      Effect.gen(function* () {
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
      }).pipe(Effect.scoped)
    )
  }
})

describe("looking at a quorum's locks", () => {
  const listed = Stream.runCollect(Stream.map(Lock.list(), ({ name }) => name))

  it.effect("Lock.list finds what a majority keeps while a minority is down, and fails without a majority", () =>
    Effect.gen(function* () {
      const stores = yield* testStores(3)
      const service = yield* quorumOf(stores)
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* listed, ["a"])
        stores[0]!.isDown = true
        assert.deepStrictEqual(yield* listed, ["a"])
        stores[1]!.isDown = true
        const error = yield* Effect.flip(listed)
        assert.instanceOf(error.cause, QuorumNotReached)
        assert.strictEqual(error.reason, "NotConnected")
        for (const store of stores) store.isDown = false
      }).pipe(Lock.withLock("a"), as(service))
    }).pipe(Effect.scoped)
  )
})
