/**
 * A client that is closed gives back what it holds, whatever order scopes are closed in.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Option, Result, Schema, Scope, Stream } from "effect"
import {
  type AcquireError,
  CountDownLatch,
  FairLock,
  FencedLock,
  type Holding,
  type LatchTimeout,
  Lock,
  type LockLost,
  type LockReentered,
  type LockTimeout,
  MultiLock,
  NonReentrantLock,
  PermitId,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  RedLock,
  RunOnce,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { soon, until } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { as, clientLayer, clientOf, type Service, testStore, testStores, serviceOf } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test, testLive } from "../kit/test.ts"
import { background } from "../kit/background.ts"

type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered | LockTimeout, any>
type Live = Layer.Layer<RedisLock.RedisLock>

/** Notes warnings and errors as text. */
const noting = (messages: Array<string>) =>
  Logger.layer([
    Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn" || logLevel === "Error") messages.push(String(message))
    })
  ])

const quorumKinds: Record<string, (name: string) => AnyLock> = {
  "a lock": Lock.make,
  "a spin lock": SpinLock.make,
  "a fenced lock": FencedLock.make,
  "a non-reentrant lock": NonReentrantLock.make,
  "a read lock": (name) => ReadWriteLock.make(name).readLock,
  "a write lock": (name) => ReadWriteLock.make(name).writeLock,
  "several locks as one": (name) => MultiLock.make([Lock.make(`${name}:1`), Lock.make(`${name}:2`)])
}

const kinds: typeof quorumKinds = { ...quorumKinds, "a fair lock": FairLock.make }

const suite = (where: string, clients: Effect.Effect<Live, never, Scope.Scope>, kinds: typeof quorumKinds) =>
  describe(`closing a client of ${where} first`, () => {
    const setUp = Effect.gen(function* () {
      const live = yield* clients
      const [own, others] = yield* Effect.forEach([1, 2], () => Effect.map(Scope.make(), (scope) => ({ scope })))
      const serviceIn = ({ scope }: { readonly scope: Scope.Scope }) => Scope.provide(serviceOf(live), scope)
      const service = yield* serviceIn(own!)
      const other = yield* serviceIn(others!)
      yield* Effect.addFinalizer(() => Scope.close(others!.scope, Exit.void))
      return { live, service, other, close: Scope.close(own!.scope, Exit.void), name: `closing:${crypto.randomUUID()}` }
    })

    for (const [kind, make] of Object.entries(kinds)) {
      it.live(`Closing a client of ${where} gives back ${kind} of a scope that is closed later`, () => {
        const messages: Array<string> = []
        return Effect.gen(function* () {
          const { live, name, other } = yield* setUp
          const lock = make(name)
          const left = yield* Effect.scoped(
            Effect.gen(function* () {
              const holding: Holding<unknown> = yield* Effect.provide(Lock.scoped(lock), Layer.fresh(live))
              assert.isFalse(yield* holding.isHeld)
              assert.strictEqual((yield* Effect.flip(holding.ensureHeld)).reason, "ClientClosed")
              return yield* Effect.result(Effect.scoped(as(other)(Lock.scoped(lock, { waitTime: 0 }))))
            })
          )
          assert.isTrue(Result.isSuccess(left), "nobody else can have it")
          assert.deepStrictEqual(messages, [])
        }).pipe(Effect.scoped, Effect.provide(noting(messages)))
      })

      testLive(`Closing a client of ${where} interrupts a section of ${kind}, and then gives it back`, function* () {
        const { close, name, other, service } = yield* setUp
        const lock = make(name)
        const [entered, ending, end] = [
          yield* Deferred.make<void>(),
          yield* Deferred.make<void>(),
          yield* Deferred.make<void>()
        ]
        const body = Effect.ensuring(
          Effect.andThen(Deferred.succeed(entered, void 0), Effect.never),
          Effect.andThen(Deferred.succeed(ending, void 0), Deferred.await(end))
        )
        const section = yield* Effect.forkChild(Effect.flip(as(service)(Lock.withLock(body, lock))))
        yield* Deferred.await(entered)
        const closing = yield* Effect.forkChild(close)
        yield* Deferred.await(ending)
        const early = yield* Effect.result(as(other)(Lock.withLock(Effect.void, lock, { waitTime: 0 })))
        const mayShare = kind === "a read lock"
        assert.strictEqual(Result.isSuccess(early), mayShare, "while the section ends")
        yield* Deferred.succeed(end, void 0)
        yield* Fiber.join(closing)
        const error = yield* Fiber.join(section)
        assert.strictEqual(error._tag === "LockLost" && error.reason, "ClientClosed")
        yield* as(other)(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
      })

      testLive(
        `Closing a client of ${where} first ends the waits for ${kind}, and leaves nothing behind`,
        function* () {
          const { close, name, other, service } = yield* setUp
          const lock = make(name)
          const rival = kind === "a read lock" ? ReadWriteLock.make(name).writeLock : lock
          const errors = yield* as(other)(
            Effect.gen(function* () {
              const waiting = yield* Effect.forkChild(
                Effect.forEach([1, 2, 3], () => Effect.flip(as(service)(Lock.withLock(Effect.void, lock))), {
                  concurrency: "unbounded"
                })
              )
              // whether they sleep yet or still ask: closing ends both
              yield* Effect.sleep(50)
              yield* close
              return yield* Fiber.join(waiting)
            }).pipe(Lock.withLock(rival))
          )
          for (const error of errors) {
            assert.strictEqual(error._tag === "LockStoreError" && error.reason, "Closed")
          }
          // neither a place nor an announcement keeps others out
          const reader = ReadWriteLock.make(name).readLock
          yield* as(other)(Lock.withLock(Effect.void, kind === "a write lock" ? reader : rival, { waitTime: 0 }))
        }
      )
    }

    testLive(`Closing a client of ${where} first refuses later requests`, function* () {
      const { close, name, service } = yield* setUp
      yield* close
      const error = yield* Effect.flip(as(service)(Lock.withLock(Effect.void, name)))
      assert.strictEqual(error._tag === "LockStoreError" && error.reason, "Closed")
    })
  })

const memory = Effect.map(testStore(), ({ store }) => clientLayer(store))
const redis = Layer.orDie(Layer.provide(RedisLock.layer(), IoRedis.layer({ url: redisUrl })))
const quorum = Effect.map(testStores(3), (stores) =>
  Layer.orDie(RedisLock.layerQuorum(stores.map(({ store }) => Layer.fresh(clientLayer(store)))))
)

suite("a store in memory", memory, kinds)
suite("Redis", Effect.succeed(redis), kinds)
suite("a quorum", quorum, quorumKinds)

describe("closing a client first", () => {
  const semaphores = (where: string, live: Effect.Effect<Live, never, Scope.Scope>) => {
    it.live(`Closing a client first gives back the permits of semaphores on ${where}`, () => {
      const messages: Array<string> = []
      return Effect.gen(function* () {
        const clients = yield* live
        const name = `closing:${crypto.randomUUID()}`
        const leased = PermitSemaphore.make(`${name}:leased`, { permits: 3 })
        const counted = Semaphore.make(`${name}:counted`, { permits: 3 })
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Effect.provide(
              Effect.all([
                PermitSemaphore.scoped(leased, { permits: 2 }),
                Semaphore.scoped(counted, 2),
                // nothing gives these back
                Semaphore.acquire(counted, 1)
              ]),
              Layer.fresh(clients)
            )
            yield* Effect.gen(function* () {
              assert.strictEqual(yield* PermitSemaphore.availablePermits(leased), 3)
              assert.strictEqual(yield* Semaphore.availablePermits(counted), 2)
            }).pipe(Effect.provide(Layer.fresh(clients)))
          })
        )
        assert.deepStrictEqual(messages, [])
      }).pipe(Effect.scoped, Effect.provide(noting(messages)))
    })

    testLive(`Closing a client first interrupts sections with permits on ${where}, and ends waits`, function* () {
      const clients = yield* live
      const name = `closing:${crypto.randomUUID()}`
      const leased = PermitSemaphore.make(`${name}:leased`, { permits: 1 })
      const counted = Semaphore.make(`${name}:counted`, { permits: 1 })
      const running = yield* Effect.gen(function* () {
        yield* CountDownLatch.trySetCount(name, 1)
        const asked: ReadonlyArray<
          Effect.Effect<unknown, AcquireError | LockLost | LatchTimeout, RedisLock.RedisLock>
        > = [
          PermitSemaphore.withPermit(Effect.never, leased),
          Semaphore.withPermits(Effect.never, counted, 1),
          PermitSemaphore.withPermit(Effect.never, leased),
          Semaphore.withPermits(Effect.never, counted, 1),
          CountDownLatch.await(name)
        ]
        const running = yield* Effect.forEach(asked, (self) =>
          Effect.tap(Effect.forkDetach(Effect.flip(self)), () => Effect.sleep(20))
        )
        return running
      }).pipe(Effect.provide(Layer.fresh(clients)))
      const errors = yield* Effect.forEach(running, (fiber) => Fiber.join(fiber))
      assert.deepStrictEqual(
        errors.map((error) => ("reason" in error ? error.reason : error._tag)),
        ["ClientClosed", "ClientClosed", "Closed", "Closed", "Closed"]
      )
    })
  }
  semaphores("a store in memory", memory)
  semaphores("Redis", Effect.succeed(redis))

  it.live("A lock on a majority is given back, whichever member's client is closed first", () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      for (const first of [0, 1, 2]) {
        const stores = yield* testStores(3)
        const scopes = yield* Effect.forEach(stores, () => Scope.make())
        const services: Array<Service> = []
        for (const [i, { store }] of stores.entries()) {
          services.push(yield* Scope.provide(clientOf({ store }), scopes[i]!))
        }
        const lock = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
        const end = yield* Scope.make()
        const holding = yield* Scope.provide(Lock.scoped(lock), end)
        yield* Scope.close(scopes[first]!, Exit.void)
        assert.isFalse(yield* holding.isHeld)
        for (const store of stores) assert.isTrue(yield* store.isFree("a"))
        for (const scope of scopes) yield* Scope.close(scope, Exit.void)
        yield* Scope.close(end, Exit.void)
      }
      assert.deepStrictEqual(messages, [])
    }).pipe(Effect.scoped, Effect.provide(noting(messages)))
  })

  it.effect("Closing a client reports within the release timeout what it could not give back", () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      const server = yield* testStore()
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(clientLayer(server.store, { releaseTimeout: 300 }), scope)
      const end = yield* Scope.make()
      yield* Effect.provide(Scope.provide(Lock.scoped("a"), end), context)
      server.isDown = true
      const closing = yield* background(Scope.close(scope, Exit.void))
      yield* TestClock.adjust(299)
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(closing)
      assert.strictEqual(messages.length, 1)
      assert.include(messages[0], "could not be given back in time")
      yield* Scope.close(end, Exit.void)
      assert.strictEqual(messages.length, 1)
    }).pipe(Effect.scoped, Effect.provide(noting(messages)))
  })

  for (const healthy of [0, 1, 2]) {
    it.live(
      `A client gives back its own locks when it closes, while the two other servers of its RedLock are silent: it is member ${healthy + 1}`,
      () => {
        const messages: Array<string> = []
        return Effect.gen(function* () {
          const stores = yield* testStores(3)
          const scopes = yield* Effect.forEach(stores, () => Scope.make())
          const services: Array<Service> = []
          for (const [i, { store }] of stores.entries()) {
            const layer = Layer.fresh(clientLayer(store, { releaseTimeout: "1 second" }))
            services.push(Context.get(yield* Layer.buildWithScope(layer, scopes[i]!), RedisLock.RedisLock))
          }
          const [server, service] = [stores[healthy]!, services[healthy]!]
          const red = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
          const end = yield* Scope.make()
          yield* Scope.provide(Lock.scoped(red), end)
          yield* Scope.provide(as(service)(Lock.scoped("x")), end)
          const { fiber } = yield* sectionUntilTold((body) => as(service)(Lock.withLock(body, "y")))
          for (const store of stores) if (store !== server) store.delay = () => 10_000
          const closing = yield* background(Scope.close(scopes[healthy]!, Exit.void))
          for (const name of ["x", "y"]) yield* until(`${name} is free`, server.isFree(name))
          // the lock on the majority still has time
          assert.deepStrictEqual(messages, [])
          yield* Fiber.join(closing)
          assert.lengthOf(messages, 1)
          assert.include(messages[0], "1 that it held could not be given back in time")
          const error = yield* Effect.flip(Fiber.join(fiber))
          assert.strictEqual(error._tag === "LockLost" && error.reason, "ClientClosed")
          for (const scope of scopes) yield* Scope.close(scope, Exit.void)
          yield* Scope.close(end, Exit.void)
        }).pipe(Effect.scoped, Effect.provide(noting(messages)))
      }
    )
  }

  it.effect("A client that closes in the moment in which a release has given up still gives back all else", () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      const server = yield* testStore()
      const store = wrappedStore(server.store, ({ keys, operation, run }) =>
        operation === "lock/release" && keys[0] === "a" ? Effect.never : run()
      )
      const clients = yield* Scope.make()
      const service = yield* Scope.provide(clientOf({ store }, { releaseTimeout: 300 }), clients)
      const end = yield* Scope.make()
      yield* Scope.provide(as(service)(Lock.scoped("x")), end)
      yield* sectionUntilTold((body) => Effect.exit(as(service)(Lock.withLock(body, "y"))))
      const releasing = yield* background(Effect.scoped(as(service)(Lock.scoped("a"))))
      yield* TestClock.adjust(300)
      yield* Fiber.join(releasing)
      yield* Scope.close(clients, Exit.void)
      for (const name of ["x", "y"]) assert.isTrue(yield* server.isFree(name), name)
      assert.isFalse(yield* server.isFree("a"))
      yield* Scope.close(end, Exit.void)
      assert.lengthOf(messages, 1, "that of the release")
    }).pipe(Effect.scoped, Effect.provide(noting(messages)))
  })

  for (const [what, lock] of Object.entries({
    "a lock": Lock.make("a"),
    "several locks": MultiLock.make(["a", "b"])
  })) {
    testLive(`A client closes at once although its store has died of the release of ${what}`, function* () {
      const server = yield* testStore()
      const store = wrappedStore(server.store, ({ operation, run }) =>
        operation.endsWith("/release") ? Effect.die("a defect of the store") : run()
      )
      const scope = yield* Scope.make()
      const service = yield* Scope.provide(clientOf({ store }, { releaseTimeout: "1 minute" }), scope)
      assert.isTrue(Exit.hasDies(yield* Effect.exit(as(service)(Lock.withLock(Effect.void, lock)))))
      yield* soon("the client closes", Scope.close(scope, Exit.void), "20 seconds")
    })
  }

  testLive("A client that closes gives back also what may be left of a lock that it has lost", function* () {
    const server = yield* testStore()
    let releases = 0
    const store = wrappedStore(server.store, ({ fail, operation, run }) =>
      operation === "lock/release" && releases++ === 0 ? fail() : run()
    )
    const scope = yield* Scope.make()
    const service = yield* Scope.provide(clientOf({ store }, { watchdogLeaseTime: "1 second" }), scope)
    // a renewal may have extended it anyway
    const losing = yield* Effect.forkChild(Effect.flip(as(service)(Lock.withLock(Effect.never, "a"))))
    yield* until(
      "the lock is held",
      Effect.map(server.isFree("a"), (isFree) => !isFree)
    )
    yield* server.delete("a")
    assert.strictEqual((yield* Fiber.join(losing))._tag, "LockLost")
    yield* soon("the client closes", Scope.close(scope, Exit.void), "20 seconds")
    assert.strictEqual(releases, 2)
  })

  test("A rollback of which the store has died delays neither the close nor what follows later rollbacks", function* () {
    const server = yield* testStore()
    let releases = 0
    const store = wrappedStore(server.store, ({ fail, operation, run }) => {
      if (operation === "lock/acquire") return Effect.andThen(run(), fail("TimedOut"))
      if (operation !== "lock/release") return run()
      return releases++ === 0 ? Effect.die("a defect of the store") : Effect.andThen(Effect.sleep(50), run())
    })
    const scope = yield* Scope.make()
    const service = yield* Scope.provide(clientOf({ store }, { releaseTimeout: "10 seconds" }), scope)
    const ask = (name: string) =>
      background(Effect.exit(as(service)(Lock.withLock(Effect.void, name, { waitTime: 0 }))))
    const first = yield* ask("a")
    yield* TestClock.adjust(200)
    assert.isDefined(first.pollUnsafe())
    const second = yield* ask("b")
    yield* TestClock.adjust(49)
    assert.isUndefined(second.pollUnsafe(), "its rollback is awaited")
    yield* TestClock.adjust(1)
    assert.isDefined(second.pollUnsafe())
    const closing = yield* background(Scope.close(scope, Exit.void))
    yield* TestClock.withLive(Effect.timeoutOption(Fiber.await(closing), "5 seconds"))
    assert.isDefined(closing.pollUnsafe())
  })

  testLive("Closing a client waits for an acquisition that is under way, and rolls it back", function* () {
    const server = yield* testStore()
    const scope = yield* Scope.make()
    const [sent, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const store = wrappedStore(server.store, ({ operation, run }) =>
      operation === "lock/acquire"
        ? Effect.andThen(Effect.andThen(Deferred.succeed(sent, void 0), Deferred.await(gate)), run())
        : run()
    )
    const context = yield* Layer.buildWithScope(clientLayer(store), scope)
    let entered = false
    const section = yield* Effect.forkChild(
      Effect.result(Effect.provide(Effect.sync(() => (entered = true)).pipe(Lock.withLock("a")), context))
    )
    yield* Deferred.await(sent)
    const closing = yield* background(Scope.close(scope, Exit.void))
    yield* Deferred.succeed(gate, void 0)
    yield* Fiber.join(closing)
    assert.isTrue(Result.isFailure(yield* Fiber.join(section)))
    assert.isFalse(entered)
    assert.isTrue(yield* server.isFree("a"))
  })

  testLive(
    "Closing a client takes back permits that are granted meanwhile, and their section does not begin",
    function* () {
      const server = yield* testStore()
      const scope = yield* Scope.make()
      const semaphore = Semaphore.make("a", { permits: 1 })
      const [sent, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const store = wrappedStore(server.store, ({ operation, run }) =>
        operation === "semaphore/acquire"
          ? Effect.andThen(Effect.andThen(Deferred.succeed(sent, void 0), Deferred.await(gate)), run())
          : run()
      )
      const context = yield* Layer.buildWithScope(clientLayer(store), scope)
      let entered = false
      const section = yield* Effect.sync(() => (entered = true))
        .pipe(Semaphore.withPermits(semaphore, 1))
        .pipe(Effect.provide(context), Effect.result, Effect.forkChild)
      yield* Deferred.await(sent)
      const closing = yield* background(Scope.close(scope, Exit.void))
      yield* Deferred.succeed(gate, void 0)
      yield* Fiber.join(closing)
      const result = yield* Fiber.join(section)
      assert.isFalse(entered, "its section has begun")
      assert.isTrue(Result.isFailure(result))
      const other = yield* clientOf(server)
      assert.strictEqual(yield* as(other)(Semaphore.availablePermits(semaphore)), 1)
    }
  )
})

describe("the body of a section", () => {
  const service = Effect.flatMap(testStore(), (server) => clientOf(server))

  const sections: Record<string, (body: Effect.Effect<void>) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>> =
    {
      "Lock.withLock": (body) => Lock.withLock(body, "a"),
      "Lock.withLockIfAvailable": (body) => Lock.withLockIfAvailable(body, "a"),
      "PermitSemaphore.withPermits": (body) =>
        PermitSemaphore.withPermits(body, PermitSemaphore.make("leased", { permits: 1 }), 1),
      "Semaphore.withPermits": (body) => Semaphore.withPermits(body, Semaphore.make("counted", { permits: 1 }), 1),
      "Semaphore.withPermits, without permits": (body) =>
        Semaphore.withPermits(body, Semaphore.make("counted", { permits: 1 }), 0),
      "Semaphore.withPermitsIfAvailable": (body) =>
        Semaphore.withPermitsIfAvailable(body, Semaphore.make("counted", { permits: 1 }), 1)
    }
  for (const [title, section] of Object.entries(sections)) {
    test(`The body of a section of ${title} ends the fibers that it has forked, unless they are detached`, function* () {
      const fibers: Array<Fiber.Fiber<never>> = []
      yield* section(
        Effect.gen(function* () {
          fibers.push(yield* background(Effect.never))
          fibers.push(yield* Effect.forkDetach(Effect.never, { startImmediately: true }))
        })
      ).pipe(as(yield* service))
      const [child, detached] = fibers as [Fiber.Fiber<never>, Fiber.Fiber<never>]
      assert.isTrue(Option.isSome(Option.fromUndefinedOr(child.pollUnsafe())), "a child")
      assert.isUndefined(detached.pollUnsafe(), "a detached fiber")
      yield* Fiber.interrupt(detached)
    })

    // nothing is held then
    if (title.endsWith("without permits")) continue
    test(`The body of a section of ${title} that is interrupted keeps others out until its finalizers have ended`, function* () {
      const server = yield* testStore()
      const [own, other] = [as(yield* clientOf(server)), as(yield* clientOf(server))]
      const [ending, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const log: Array<string> = []
      yield* Effect.addFinalizer(() => Deferred.succeed(end, void 0))
      const finalizer = Deferred.succeed(ending, void 0).pipe(
        Effect.andThen(Deferred.await(end)),
        Effect.andThen(Effect.sync(() => void log.push("has ended")))
      )
      const interrupted = yield* background(own(section(Effect.onInterrupt(Effect.never, () => finalizer))))
      const interrupting = yield* background(Fiber.interrupt(interrupted))
      yield* Deferred.await(ending)
      const enter = other(section(Effect.sync(() => void log.push("is inside"))))
      const early = yield* Effect.forkChild(enter)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(log, [])
      yield* Deferred.succeed(end, void 0)
      yield* Fiber.join(interrupting)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(early)
      yield* enter
      assert.deepStrictEqual([...new Set(log)], ["has ended", "is inside"])
    })
  }
})

testLive("Waiting for a latch fails with Closed where the client is closed already", function* () {
  const store = yield* testStore()
  const scope = yield* Scope.make()
  const service = yield* Scope.provide(clientOf(store), scope)
  yield* as(service)(CountDownLatch.trySetCount("start", 1))
  yield* Scope.close(scope, Exit.void)
  for (const waitTime of [undefined, "1 minute", 0] as const) {
    const error = yield* Effect.flip(as(service)(CountDownLatch.await("start", { waitTime })))
    assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "Closed")
  }
})

test("Listing and watching locks fails with Closed where the client is closed, also on a store that goes on", function* () {
  const scope = yield* Scope.make()
  const service = yield* Scope.provide(clientOf(yield* testStore()), scope)
  yield* as(service)(Stream.runDrain(Lock.list()))
  const watching = yield* background(as(service)(Effect.flip(Stream.runDrain(Lock.watch()))))
  yield* Scope.close(scope, Exit.void)
  yield* TestClock.adjust("1 minute")
  assert.deepInclude(yield* Fiber.join(watching), { _tag: "LockStoreError", reason: "Closed" })
  const error = yield* Effect.flip(as(service)(Stream.runDrain(Lock.list())))
  assert.deepInclude(error, { _tag: "LockStoreError", reason: "Closed", isTransient: false })
})

test("Giving back permits by their ids fails with Closed where the client is closed, also on a store that goes on", function* () {
  const scope = yield* Scope.make()
  const service = yield* Scope.provide(clientOf(yield* testStore()), scope)
  const semaphore = PermitSemaphore.make("a", { permits: 1 })
  const { ids } = yield* Scope.provide(as(service)(PermitSemaphore.scoped(semaphore)), scope)
  yield* background(Scope.close(scope, Exit.void))
  yield* TestClock.adjust("1 minute")
  const error = yield* Effect.flip(as(service)(PermitId.tryRelease(semaphore, ids)))
  assert.deepInclude(error, { _tag: "LockStoreError", reason: "Closed", isTransient: false })
})

test("A caller of RunOnce.run whose client is closed before anything has run fails with Closed", function* () {
  const store = yield* testStore()
  const scope = yield* Scope.make()
  const service = yield* Scope.provide(clientOf(store), scope)
  const once = RunOnce.make("once", { timeToLive: "1 hour", result: Schema.Number })
  let reads = 0
  store.delay = (operation) => (operation === "record/read" && ++reads === 2 ? 1000 : 0)
  const running = RunOnce.run(Effect.succeed(1), once)
  const caller = yield* background(as(service)(Effect.flip(running)))
  yield* TestClock.adjust("100 millis")
  assert.strictEqual(reads, 2)
  yield* background(Scope.close(scope, Exit.void))
  yield* TestClock.adjust("1 minute")
  assert.deepInclude(yield* Fiber.join(caller), { _tag: "LockStoreError", reason: "Closed" })
})
