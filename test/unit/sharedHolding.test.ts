/**
 * Several fibers inside of one holding: what one of them gives back is its own and nobody else's, and what it holds no more lets
 * nobody in.
 */
import { failure } from "../kit/exits.ts"
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { type Holding, Lock, LockStore, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { jumpingClock } from "../kit/jumpingClock.ts"
import { onRedis } from "../kit/stores.ts"
import { as, clientOf, type Service, storeOf, storeWith, testStore } from "../kit/testStore.ts"
import { test, testsThrough } from "../kit/test.ts"
import { expectWarning } from "../run/logs.ts"
import { type Store, wrappedStore } from "../kit/wrappedStore.ts"
import { testLive } from "../kit/test.ts"
import { background } from "../kit/background.ts"

/** The `n`th time an operation is sent, it waits for the gate, before it is run or with its reply. */
const gated = (
  store: Store,
  operation: LockStore.Operation,
  n: number,
  where: "command" | "reply",
  gate: Effect.Effect<void>
): Store => {
  let sent = 0
  return wrappedStore(store, (request) =>
    Effect.suspend(() => {
      const run = request.run()
      if (request.operation !== operation || ++sent !== n) return run
      return where === "command" ? Effect.andThen(gate, run) : Effect.tap(run, gate)
    })
  )
}

/** A holding in a scope of its own. */
const holdingIn = (lock: Lock.Lock, scope: Scope.Scope, options?: Lock.AcquireOptions) =>
  Scope.provide(Lock.scoped(lock, options), scope)

const suite = <E>(where: string, stores: Layer.Layer<LockStore.LockStore, E>) =>
  describe(`on ${where}`, () => {
    const setUp = Effect.gen(function* () {
      const store = yield* storeOf(stores)
      const lock = ReadWriteLock.make(`shared:${crypto.randomUUID()}`)
      const rival = yield* clientOf({ store })
      const canWrite = Effect.map(
        Effect.scoped(Effect.provideService(Lock.tryScoped(lock.writeLock), RedisLock.RedisLock, rival)),
        Option.isSome
      )
      return { store, lock, canWrite }
    })

    testLive(
      "A reader's re-entry that is interrupted takes no lease from another that was sent at the same time",
      function* () {
        const { canWrite, lock, store } = yield* setUp
        const service = yield* clientOf({ store: gated(store, "read_lock/renew", 1, "command", Effect.never) })
        yield* Effect.gen(function* () {
          const [outer, inner, never] = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()]
          yield* holdingIn(lock.readLock, outer, { leaseTime: "1 minute" })
          const interrupted = yield* background(holdingIn(lock.readLock, never, { leaseTime: "1 minute" }))
          const holding = yield* holdingIn(lock.readLock, inner, { leaseTime: "1 minute" })
          yield* Fiber.interrupt(interrupted)
          yield* Scope.close(outer, Exit.void)
          assert.isTrue(yield* holding.isHeld)
          assert.isFalse(yield* canWrite)
          yield* Scope.close(inner, Exit.void)
          assert.isTrue(yield* canWrite)
        }).pipe(Lock.withOwner, as(service))
      }
    )

    testLive(
      "a reader's re-entry that is under way keeps its lock when the outer holding ends meanwhile",
      function* () {
        const { canWrite, lock, store } = yield* setUp
        const gate = yield* Deferred.make<void>()
        const service = yield* clientOf({ store: gated(store, "read_lock/renew", 1, "reply", Deferred.await(gate)) })
        yield* Effect.gen(function* () {
          const [outer, inner] = [yield* Scope.make(), yield* Scope.make()]
          const first = yield* holdingIn(lock.readLock, outer)
          const entering = yield* background(holdingIn(lock.readLock, inner))
          yield* Scope.close(outer, Exit.void)
          // time for a false alarm
          yield* Effect.sleep(20)
          yield* Deferred.succeed(gate, void 0)
          const second = yield* Fiber.join(entering)
          assert.strictEqual(second.owner, first.owner)
          assert.isTrue(yield* second.isHeld)
          assert.isFalse(yield* canWrite)
          yield* Scope.close(inner, Exit.void)
          assert.isTrue(yield* canWrite)
        }).pipe(Lock.withOwner, as(service))
      }
    )

    testLive("a reader's late re-entry that was given up shortens no lease of one that came after it", function* () {
      const { canWrite, lock, store } = yield* setUp
      const gate = yield* Deferred.make<void>()
      const arrived = yield* Deferred.make<void>()
      let first = true
      const service = yield* clientOf({
        store: wrappedStore(store, (request) =>
          Effect.suspend(() => {
            const run = request.run()
            if (request.operation !== "read_lock/renew" || !first) return run
            first = false
            // on its way over a connection of its own, whatever becomes of the caller
            return Effect.andThen(
              Effect.forkDetach(
                Effect.andThen(
                  Deferred.await(gate),
                  Effect.andThen(Effect.exit(run), Deferred.succeed(arrived, void 0))
                )
              ),
              Effect.never
            )
          })
        )
      })
      yield* Effect.gen(function* () {
        const [outer, inner, never] = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()]
        yield* holdingIn(lock.readLock, outer, { leaseTime: "1 minute" })
        const interrupted = yield* background(holdingIn(lock.readLock, never, { leaseTime: 200 }))
        yield* Fiber.interrupt(interrupted)
        const holding = yield* holdingIn(lock.readLock, inner, { leaseTime: "1 minute" })
        yield* Deferred.succeed(gate, void 0)
        yield* Deferred.await(arrived)
        yield* Scope.close(outer, Exit.void)
        // past the lease of the re-entry that was given up
        yield* Effect.sleep(300)
        assert.isTrue(yield* holding.isHeld)
        assert.isFalse(yield* canWrite)
        yield* Scope.close(inner, Exit.void)
      }).pipe(Lock.withOwner, as(service))
    })
  })

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)

describe("a fiber that has left its section", () => {
  /** A section that leaves a detached fiber behind, which re-enters and stays in until it is told to go. */
  const leavingOneBehind = (entered: Deferred.Deferred<void>, stay: Effect.Effect<void>) =>
    Lock.withLock(
      Effect.andThen(
        Effect.forkDetach(Lock.withLock(Effect.andThen(Deferred.succeed(entered, void 0), stay), "a"), {
          startImmediately: true
        }),
        Deferred.await(entered)
      ),
      "a"
    )

  const test = testsThrough<RedisLock.RedisLock>((self) =>
    Effect.flatMap(Effect.flatMap(testStore(), clientOf), (service) => as(service)(self))
  )

  test("A fiber that has left its section is kept out by a detached fiber that it has left inside", function* () {
    const [entered, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    yield* leavingOneBehind(entered, Deferred.await(gate))
    const again = yield* Effect.result(Lock.withLock(Effect.succeed("in"), "a", { waitTime: 0 }))
    assert.strictEqual(again._tag === "Failure" ? again.failure._tag : again.success, "LockTimeout")
    assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped("a"))), "for a scope")
    const waiting = yield* background(Lock.withLock(Effect.void, "a"))
    assert.isUndefined(waiting.pollUnsafe())
    yield* Deferred.succeed(gate, void 0)
    yield* Fiber.join(waiting)
  })

  test("Of several fibers that a section has left behind, only one at a time is let in", function* () {
    const [entered, gate, over] = [
      yield* Deferred.make<void>(),
      yield* Deferred.make<void>(),
      yield* Deferred.make<void>()
    ]
    const second = yield* Lock.withLock(
      Effect.andThen(
        leavingOneBehind(entered, Deferred.await(gate)),
        Effect.forkDetach(
          Effect.andThen(Deferred.await(over), Effect.result(Lock.withLock(Effect.void, "a", { waitTime: 0 }))),
          { startImmediately: true }
        )
      ),
      "a"
    )
    yield* Deferred.succeed(over, void 0)
    assert.strictEqual((yield* Fiber.join(second))._tag, "Failure")
    yield* Deferred.succeed(gate, void 0)
  })

  test("A detached fiber inside a section still re-enters", function* () {
    const [entered, gate, done] = [
      yield* Deferred.make<void>(),
      yield* Deferred.make<void>(),
      yield* Deferred.make<number>()
    ]
    yield* leavingOneBehind(
      entered,
      Effect.gen(function* () {
        yield* Deferred.await(gate)
        const count = yield* Lock.withLock(Lock.holdCount("a"), "a", { waitTime: 0 })
        yield* Deferred.succeed(done, count)
      }).pipe(Effect.orDie, Effect.provideContext(yield* Effect.context<RedisLock.RedisLock>()))
    )
    yield* Deferred.succeed(gate, void 0)
    assert.strictEqual(yield* Deferred.await(done), 2)
  })

  test("Of two fibers with one scope, the one that has released early re-enters by the scope alone", function* () {
    const shared = yield* Scope.make()
    const own = yield* Scope.make()
    const mine = yield* Scope.provide(Lock.scoped("a"), shared)
    // the other fiber is in by the scope that both have
    const theirs: Holding = yield* Fiber.join(yield* Effect.forkChild(Scope.provide(Lock.scoped("a"), shared)))
    assert.strictEqual(theirs.owner, mine.owner)
    yield* mine.release
    assert.isTrue(yield* theirs.isHeld)
    assert.isTrue(Option.isNone(yield* Scope.provide(Lock.tryScoped("a"), own)), "by the fiber")
    assert.isTrue(Option.isSome(yield* Scope.provide(Lock.tryScoped("a"), shared)), "by the scope")
    yield* Scope.close(shared, Exit.void)
    assert.isTrue(Option.isSome(yield* Scope.provide(Lock.tryScoped("a"), own)))
    yield* Scope.close(own, Exit.void)
  })
})

describe("a reply that is read after the lease is over", () => {
  type Jump = Effect.Success<typeof jumpingClock>["jump"]
  const testJumping = (
    title: string,
    steps: (jump: Jump) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>
  ) =>
    test(title, function* () {
      const { jump, on } = yield* jumpingClock
      yield* on(Effect.scoped(Effect.gen(() => steps(jump))))
    })

  /** A store after whose replies to an operation this process does nothing for a while, and a client of its that is not. */
  const blockedAfter = Effect.fnUntraced(function* (
    jump: Jump,
    operation: LockStore.Operation,
    meanwhile?: (rival: Service) => Effect.Effect<unknown>
  ) {
    const [server, rival] = yield* storeWith({})
    const store = wrappedStore(server.store, (request) =>
      Effect.tap(request.run(), () =>
        request.operation === operation ? Effect.andThen(jump(300), meanwhile?.(rival) ?? Effect.void) : Effect.void
      )
    )
    return { ...server, store }
  })

  testJumping("A re-entry whose reply is read after the lease is over begins no inner section", function* (jump) {
    const rivals = yield* Scope.make()
    const service = yield* clientOf(
      yield* blockedAfter(jump, "lock/renew", (rival) =>
        Effect.orDie(Scope.provide(Lock.scoped("a"), rivals).pipe(as(rival)))
      )
    )
    let entered = 0
    const inner = Effect.sync(() => void entered++).pipe(Lock.withLock("a", { leaseTime: 200 }))
    const exit = yield* Effect.exit(Lock.withLock(inner, "a", { leaseTime: 200 }).pipe(as(service)))
    assert.strictEqual(entered, 0)
    assert.strictEqual(failure(exit)._tag, "LockLost")
    yield* Scope.close(rivals, Exit.void)
  })

  testJumping("An acquisition whose reply is read after the lease is over begins no section", function* (jump) {
    const service = yield* clientOf(yield* blockedAfter(jump, "lock/acquire"))
    let entered = 0
    const section = Effect.sync(() => void entered++).pipe(Lock.withLock("a", { leaseTime: 200, waitTime: 0 }))
    const exit = yield* Effect.exit(as(service)(section))
    assert.strictEqual(entered, 0)
    assert.strictEqual(failure(exit)._tag, "LockStoreError")
  })

  testJumping("A renewal whose reply is read after the lease renews nothing, and the loss says so", function* (jump) {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const service = yield* clientOf(yield* blockedAfter(jump, "lock/renew"), { watchdogLeaseTime: 300 })
    const { awaitLost } = yield* as(service)(Lock.scoped("a"))
    const losing = yield* background(Effect.flip(awaitLost))
    yield* TestClock.adjust(100)
    assert.strictEqual((yield* Fiber.join(losing)).reason, "RenewalFailed")
  })

  testJumping("A renewal that is unanswered at the deadline has failed, whoever checks first", function* (jump) {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const server = yield* testStore()
    const store = wrappedStore(server.store, ({ operation, run }) =>
      operation === "lock/renew" ? Effect.never : run()
    )
    const { ensureHeld } = yield* as(yield* clientOf({ store }, { watchdogLeaseTime: 300 }))(Lock.scoped("a"))
    yield* TestClock.adjust(100)
    yield* jump(400)
    assert.strictEqual((yield* Effect.flip(ensureHeld)).reason, "RenewalFailed")
  })
})
