/**
 * A quorum of stores in memory, under virtual time: waiting, re-entry, several locks, options and members.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import {
  CountDownLatch,
  FairLock,
  InvalidLockOptions,
  Lock,
  LockStore,
  LockStoreError,
  MultiLock,
  PermitSemaphore,
  QuorumNotReached,
  ReadWriteLock,
  RedisLock,
  RedLock,
  Semaphore
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import {
  as,
  clientLayer,
  clientOf,
  quorumOf,
  type Service,
  type TestStore,
  testStore,
  testStores
} from "../kit/testStore.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { test } from "../kit/test.ts"
import { expectWarning } from "../run/logs.ts"

const count = (operations: ReadonlyArray<string>, operation: string) =>
  operations.filter((other) => other === operation).length

describe("waiting for a quorum's lock", () => {
  test("A wait for a quorum's lock does not loop tightly when a member has lost the holder's share", function* () {
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

  test("A writer that waits for a quorum's readers asks rarely, whichever reader each member names", function* () {
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
          ["rw", "redisson_lock_token:{rw}", `{rw}:${owner}:rwlock_timeout:1`, "readers:{rw}", "places:{rw}"],
          [owner, 60_000, "", 0, "", ""]
        )
      }
    }
    const service = yield* quorumOf(stores)
    yield* Effect.void.pipe(Lock.withLock(writeLock), as(service), Effect.forkChild)
    yield* TestClock.adjust("5 seconds")
    assert.isBelow(count(stores[0]!.operations, "write_lock/acquire"), 10)
  })
})

describe("re-entering a quorum's lock", () => {
  test("A re-entry on which no majority agrees fails, does not say that nobody granted the lock, and the section around it goes on", function* () {
    const stores = yield* testStores(3)
    const [first, second] = stores as [TestStore, TestStore]
    const enter = Effect.void.pipe(Lock.withLock("a", { waitTime: 0 }))
    const outer = Effect.gen(function* () {
      yield* first.delete("a")
      second.isDown = true
      const failed = yield* Effect.flip(enter)
      second.isDown = false
      yield* enter
      return failed
    })
    const failed = yield* outer.pipe(Lock.withLock("a"), as(yield* quorumOf(stores)))
    assert.isTrue(failed instanceof LockStoreError && failed.cause instanceof QuorumNotReached, String(failed))
    assert.notInclude(failed.message, "granted")
  })
})

describe("several locks of a quorum", () => {
  test("Several locks of a quorum are acquired all or none, and are lost with one of them", function* () {
    const stores = yield* testStores(3)
    const [mine, others] = [as(yield* quorumOf(stores)), as(yield* quorumOf(stores))]
    const both = MultiLock.make([Lock.make("a"), Lock.make("b")])
    // a stranger to whatever is held here
    const got = (lock: string) => others(Lock.withOwner(Effect.map(Effect.scoped(Lock.tryScoped(lock)), Option.isSome)))
    stores[0]!.isDown = true
    yield* mine(
      Effect.gen(function* () {
        assert.deepStrictEqual([yield* got("a"), yield* got("b"), yield* got("c")], [false, false, true])
      }).pipe(Lock.withLock(both))
    )
    yield* others(
      Effect.gen(function* () {
        assert.isTrue(Option.isNone(yield* mine(Lock.withLockIfAvailable(Effect.void, both))))
        assert.isFalse(yield* mine(Lock.isLocked("a")))
      }).pipe(Lock.withLock("b"))
    )
    const section = yield* Effect.never.pipe(Lock.withLock(both), mine, Effect.forkChild)
    yield* TestClock.adjust(1)
    for (const store of stores.slice(1)) yield* store.delete("b")
    yield* TestClock.adjust("10 seconds")
    const lost = yield* Effect.flip(Fiber.join(section))
    assert.strictEqual(lost._tag === "LockLost" ? lost.lock : lost._tag, "b")
    for (const store of stores.slice(1)) assert.isTrue(yield* store.isFree("a"))
  })
})

describe("the members of a quorum that cannot be", () => {
  test("Members that differ in their prefix or their kind are refused before any command", function* () {
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store) => clientOf(store))
    const members = services.map((service) => Lock.provide(Lock.make("a"), service))
    const prefixes = [clientLayer(stores[0]!.store), clientLayer(stores[1]!.store, { keyPrefix: "other:" })]
    const mixed = yield* Effect.flip(Effect.scoped(Layer.build(RedisLock.layerQuorum(prefixes))))
    assert.include(mixed.message, "keyPrefix")
    for (const lock of [
      RedLock.make([...members.slice(0, 2), Lock.provide(FairLock.make("a"), services[2]!)]),
      RedLock.make([members[0]!, Lock.provide(ReadWriteLock.make("a").readLock, services[1]!)])
    ]) {
      assert.strictEqual((yield* Effect.flip(Lock.withLock(Effect.void, lock)))._tag, "InvalidLockOptions")
    }
    assert.isEmpty(stores.flatMap(({ operations }) => operations))
  })
})

describe("the options of a quorum's members", () => {
  test("A member of a RedLock with options that only the RedLock can have is refused before any command", function* () {
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store) => clientOf(store))
    const red = (options: Lock.AcquireOptions) =>
      RedLock.make(services.map((service, i) => Lock.provide(Lock.make("a", i === 1 ? options : {}), service)))
    const refused: ReadonlyArray<[Lock.AcquireOptions, string]> = [
      [{ leaseTime: "1 hour" }, "give it to RedLock.make"],
      [{ maxHold: "1 hour" }, "give it to RedLock.make"],
      [{ acknowledge: { replicas: 1 } }, "give it to the layer of that member"],
      [{ minHold: "30 seconds" }, "use an exclusive lock on one server"],
      [{ leaseTime: -1 }, "it is negative"]
    ]
    for (const [options, advice] of refused) {
      const error = yield* Effect.flip(Lock.withLock(Effect.void, red(options)))
      assert.instanceOf(error, InvalidLockOptions)
      assert.strictEqual(error.option, Object.keys(options)[0])
      assert.include(error.message, advice)
    }
    assert.isEmpty(stores.flatMap(({ operations }) => operations))
    // what it ignores, and what means nothing
    yield* Lock.withLock(Effect.void, red({ waitTime: 0, minHold: 0 }))
  })
})

describe("the members of a quorum", () => {
  test("A member of a quorum whose store breaks down counts as failed at once, with the reason", function* () {
    expectWarning(/^Could not release in time/)
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
    // what it tells them again ends with the lease, or closing would wait for it in real time
    yield* TestClock.adjust("1 minute")
  })

  test("A RedLock with a composed member is refused, also once it is bound to a service", function* () {
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store) => clientOf(store))
    const [first, ...others] = services.map((service) => Lock.provide(Lock.make("a"), service))
    const composed: ReadonlyArray<Lock.Lock<never, any, any>> = [MultiLock.make([first!]), RedLock.make([first!])]
    for (const member of composed) {
      const lock = RedLock.make([...others, member])
      for (const refused of [lock, Lock.provide(lock, services[0]!)]) {
        const error = yield* Effect.flip(Lock.withLock(Effect.void, refused))
        assert.include((error as Error).message, "must be single locks")
      }
    }
    assert.isEmpty(stores.flatMap(({ operations }) => operations))
  })

  test("The members of a quorum are refused if one of them is given twice", function* () {
    const stores = yield* testStores(2)
    const [a, b] = [yield* clientOf(stores[0]!), yield* clientOf(stores[1]!)]
    const member = (service: typeof a) => Lock.provide(Lock.make("a"), service)
    const error = yield* Effect.flip(Lock.withLock(Effect.void, RedLock.make([member(a), member(b), member(a)])))
    assert.strictEqual(error._tag, "InvalidLockOptions")
    assert.isEmpty(stores.flatMap(({ operations }) => operations))
  })

  test("The members of a quorum may be services of different prefixes", function* () {
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

  test("A RedLock holds the locks of its members, also where only some of their names have braces", function* () {
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store) => clientOf(store))
    const names = ["a", "{b}:1", "c"]
    const stems = ["{a}", "{b}:1", "{c}"]
    const kinds = {
      exclusive: (name: string) => Lock.make(name),
      read: (name: string) => ReadWriteLock.make(name).readLock,
      write: (name: string) => ReadWriteLock.make(name).writeLock
    }
    for (const [kind, make] of Object.entries(kinds)) {
      const members: ReadonlyArray<Lock.Lock<never, any>> = names.map((name, i) =>
        Lock.provide(make(name), services[i]!)
      )
      yield* Effect.gen(function* () {
        for (const [i, member] of members.entries()) assert.isTrue(yield* Lock.isLocked(member), `${kind} ${names[i]}`)
      }).pipe(Lock.withLock(RedLock.make(members)))
      for (const [i, store] of stores.entries()) {
        assert.isTrue(yield* store.isFree(names[i]!), `${kind} ${names[i]}`)
        for (const key of store.keys.flat().filter((key) => key.includes(":rwlock_timeout:"))) {
          assert.isTrue(key.startsWith(`${stems[i]}:`), key)
          assert.isTrue(yield* store.isFree(key), key)
        }
      }
    }
  })

  test("A writer that waits for the readers of a quorum has its place at each member, whatever their prefixes", function* () {
    const stores = yield* testStores(3)
    const { readLock, writeLock } = ReadWriteLock.make("rw")
    const client = Effect.forEach(stores, (store, i) => clientOf(store, { keyPrefix: `app${i}:` }))
    const on = (services: ReadonlyArray<Service>, lock: Lock.Lock<RedisLock.RedisLock, any>) =>
      RedLock.make(services.map((service) => Lock.provide(lock, service)))
    const services = yield* client
    yield* Lock.withLock(Effect.never, on(services, readLock)).pipe(background)
    yield* TestClock.adjust("100 millis")
    yield* Lock.withLock(Effect.void, on(yield* client, writeLock)).pipe(background)
    yield* TestClock.adjust("1 second")
    for (const service of services) {
      const { waiters } = yield* as(service)(Lock.inspect(writeLock))
      assert.deepStrictEqual(
        waiters.map(({ mode }) => mode),
        ["write"]
      )
    }
  })

  test("A quorum has as many servers as layers, even if a layer is given more than once", function* () {
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
})

describe("what the failure of a quorum says", () => {
  /** An error as RPC hands it on. */
  const sent = <A>(schema: abstract new (...args: any) => A, error: A): A => {
    const codec = Schema.toCodecJson(schema as unknown as Schema.Codec<A, unknown>)
    return Schema.decodeUnknownSync(codec)(JSON.parse(JSON.stringify(Schema.encodeSync(codec)(error))))
  }

  test("QuorumNotReached is transient if a majority is left without the servers that refuse for good", function* () {
    for (const [size, refusing, isTransient] of [
      [2, 1, false],
      [3, 1, true],
      [3, 2, false],
      [4, 1, true],
      [4, 2, false]
    ] as const) {
      const stores = yield* testStores(size)
      const services = yield* Effect.forEach(stores, (store) => clientOf(store))
      const red = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
      for (const [i, store] of stores.entries()) {
        store.reason = i < refusing ? "NoPermission" : "NotConnected"
        store.refuses = (operation) => operation === "lock/acquire" && i < size - 1
      }
      const error = yield* Effect.flip(Lock.withLock(Effect.void, red, { waitTime: 0 }))
      assert.instanceOf(error, QuorumNotReached)
      assert.strictEqual(error.isTransient, isTransient, `${refusing} of ${size}`)
      assert.strictEqual(sent(QuorumNotReached, error).isTransient, isTransient)
    }
  })

  test("The outcome of a command is unknown if any server of a quorum has run it or may have, and known if none has", function* () {
    const reasons = ["NotConnected", "TimedOut", "NoPermission"] as const
    const outcomes: ReadonlyArray<[ReadonlyArray<(typeof reasons)[number] | "ok">, boolean]> = [
      [["NotConnected", "TimedOut", "ok"], true],
      [["NotConnected", "TimedOut", "NotConnected"], true],
      [["NotConnected", "NotConnected", "ok"], true],
      [["NoPermission", "NoPermission", "ok"], true],
      [["NotConnected", "NotConnected", "NotConnected"], false]
    ]
    for (const [members, isUnknown] of outcomes) {
      const stores = yield* testStores(3)
      const use = as(yield* quorumOf(stores))
      for (const [i, store] of stores.entries()) {
        const outcome = members[i]!
        store.refuses = () => outcome !== "ok"
        if (outcome !== "ok") store.reason = outcome
      }
      const error = yield* Effect.flip(use(Lock.forceRelease("a")))
      assert.instanceOf(error, LockStoreError)
      assert.strictEqual(error.isOutcomeUnknown, isUnknown, members.join(", "))
      assert.strictEqual(sent(LockStoreError, error).isOutcomeUnknown, isUnknown)
      assert.strictEqual(error.isTransient, members[0] !== "NoPermission")
    }
  })

  test("An acquisition that its only reachable server has denied has a known outcome", function* () {
    const stores = yield* testStores(3)
    const use = as(yield* quorumOf(stores))
    const error = yield* Effect.suspend(() => {
      for (const store of stores.slice(1)) store.isDown = true
      return Effect.ensuring(
        Effect.flip(use(Lock.withLock(Effect.void, "a", { waitTime: 0 }))),
        Effect.sync(() => {
          for (const store of stores) store.isDown = false
        })
      )
    }).pipe(Lock.withLock("a"), as(yield* quorumOf(stores)))
    assert.instanceOf(error, LockStoreError)
    assert.isFalse(error.isOutcomeUnknown)
  })
})

describe("looking at a quorum's locks", () => {
  const listed = Stream.runCollect(Stream.map(Lock.list(), ({ name }) => name)).pipe(Lock.orDieIfInvalid)

  test("Lock.list finds what a majority keeps while a minority is down, and fails without a majority", function* () {
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
  })
})

it.effect("A quorum of servers refuses semaphores and latches", () =>
  Effect.gen(function* () {
    for (const use of [
      Semaphore.acquire("a"),
      Semaphore.availablePermits("a"),
      Effect.scoped(PermitSemaphore.scoped("a")),
      PermitSemaphore.setPermits("a", 1),
      CountDownLatch.await("a"),
      CountDownLatch.count("a")
    ]) {
      const error = yield* Effect.flip(use as Effect.Effect<unknown, unknown, RedisLock.RedisLock>)
      assert.instanceOf(error, InvalidLockOptions)
      assert.include(error.message, "a quorum of servers cannot keep it")
    }
  }).pipe(Effect.provide(RedisLock.layerQuorum([RedisLock.layerMemory, RedisLock.layerMemory, RedisLock.layerMemory])))
)
