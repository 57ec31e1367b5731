/**
 * Re-entering at a server that does not answer, and after a loss.
 */
import { failure } from "../kit/exits.ts"
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Option, Scheduler, Scope } from "effect"
import { FairLock, Lock, ReadWriteLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { background } from "../kit/background.ts"
import { Parking } from "../kit/parking.ts"
import { pass } from "../kit/passTime.ts"

test("A re-entry that is not answered can be interrupted, and the outer hold stays", function* () {
  const server = yield* testStore()
  yield* Effect.gen(function* () {
    const holding = yield* Lock.currentHolding("a")
    server.delay = () => 60_000
    const inner = yield* background(Lock.withLock(Effect.void, "a"))
    const interrupted = yield* background(Fiber.interrupt(inner))
    yield* TestClock.adjust("1 second")
    assert.isDefined(interrupted.pollUnsafe())
    yield* holding.ensureHeld
    server.delay = () => 0
    assert.strictEqual(yield* Lock.withLock(Lock.holdCount("a"), "a"), 2)
  }).pipe(Lock.withLock("a"), as(yield* clientOf(server)))
  assert.isTrue(yield* server.isFree("a"))
  // what is late ends as well, or the client would wait for it when it closes, in real time
  yield* TestClock.adjust("2 minutes")
})

test("A re-entry that is not answered does not keep a section going whose lock is lost", function* () {
  const server = yield* testStore()
  server.delay = (operation) => (operation === "lock/acquire" ? 0 : 60_000)
  const section = yield* Lock.withLock(Effect.void, "a").pipe(
    Lock.withLock("a", { leaseTime: "5 seconds" }),
    as(yield* clientOf(server)),
    background
  )
  yield* TestClock.adjust("5 seconds")
  const exit = section.pollUnsafe()
  assert.isDefined(exit)
  assert.strictEqual(failure(exit!)._tag, "LockLost")
  server.delay = () => 0
  yield* TestClock.adjust("2 minutes")
})

test("awaitLost of a released inner hold reports no later loss of the outer one", function* () {
  expectWarning(/^The lock's scope has closed, but its release went wrong\./)
  const server = yield* testStore()
  yield* Effect.gen(function* () {
    const outer = yield* Lock.scoped("a")
    const scope = yield* Scope.make()
    const inner = yield* Scope.provide(Lock.scoped("a"), scope)
    const told = yield* background(Effect.exit(outer.awaitLost))
    const earlier = yield* background(Effect.exit(inner.awaitLost))
    yield* Scope.close(scope, Exit.void)
    yield* server.delete("a")
    assert.strictEqual((yield* Effect.flip(outer.renew()))._tag, "LockLost")
    assert.isTrue(Exit.isFailure(yield* Fiber.join(told)))
    const later = yield* background(Effect.exit(inner.awaitLost))
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(earlier.pollUnsafe())
    assert.isUndefined(later.pollUnsafe())
  }).pipe(Effect.scoped, as(yield* clientOf(server)))
})

test("awaitLost of an inner hold that was lost before its release still reports that loss", function* () {
  expectWarning(/^The lock's scope has closed, but its release went wrong\./)
  const server = yield* testStore()
  yield* Effect.gen(function* () {
    const outer = yield* Lock.scoped("a")
    const inner = yield* Lock.scoped("a")
    yield* server.delete("a")
    assert.strictEqual((yield* Effect.flip(outer.renew()))._tag, "LockLost")
    assert.strictEqual((yield* Effect.flip(inner.release))._tag, "LockLost")
    assert.strictEqual((yield* Effect.flip(inner.awaitLost)).reason, "NotOwner")
  }).pipe(Effect.scoped, as(yield* clientOf(server)))
})

test("A section whose lock is gone fails, also if a fiber that has entered it again outlives it", function* () {
  const server = yield* testStore()
  const exit = yield* Effect.gen(function* () {
    const entered = yield* Deferred.make<void>()
    const inner = Lock.withLock(Effect.andThen(Deferred.succeed(entered, undefined), Effect.never), "a")
    yield* Effect.forkDetach(inner)
    yield* Deferred.await(entered)
    yield* server.delete("a")
  }).pipe(Lock.withLock("a"), as(yield* clientOf(server)), Effect.exit)
  assert.deepInclude(failure(exit), { _tag: "LockLost", reason: "NotOwner" })
})

test("A section does not fail if the fiber that outlives it frees the lock while it asks", function* () {
  const server = yield* testStore()
  const entered = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<void>()
  const inner = Lock.withLock(Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(ended)), "a")
  const outer = Effect.gen(function* () {
    yield* Effect.forkDetach(inner)
    yield* Deferred.await(entered)
    // as where a cluster redirects the question, and not the release behind it
    server.delay = (operation) => (operation === "lock/renew" ? 100 : 0)
  }).pipe(Lock.withLock("a"))
  const section = yield* background(as(yield* clientOf(server))(outer))
  yield* TestClock.adjust(10)
  yield* Deferred.succeed(ended, undefined)
  yield* TestClock.adjust(100)
  assert.deepStrictEqual(yield* Fiber.await(section), Exit.void)
  assert.isTrue(yield* server.isFree("a"))
})

test("A section that is outlived is told of no loss that comes after its end", function* () {
  const server = yield* testStore()
  const outer = Effect.gen(function* () {
    const entered = yield* Deferred.make<void>()
    const inner = Lock.withLock(Effect.andThen(Deferred.succeed(entered, undefined), Effect.never), "a")
    yield* Effect.forkDetach(inner)
    yield* Deferred.await(entered)
    yield* Effect.sleep("59 seconds")
    server.delay = () => 2000
  }).pipe(Lock.withLock("a", { maxHold: "1 minute" }))
  const section = yield* background(as(yield* clientOf(server))(outer))
  yield* TestClock.adjust("61 seconds")
  assert.deepStrictEqual(yield* Fiber.await(section), Exit.void)
  server.delay = () => 0
})

test("A section that is outlived leaves nothing held where the store has a defect", function* () {
  const server = yield* testStore()
  let isBroken = false
  const store = wrappedStore(server.store, ({ operation, run }) =>
    isBroken && operation === "lock/renew" ? Effect.die("no") : run()
  )
  const [entered, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const inner = Lock.withLock(Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(ended)), "a")
  const outer = Effect.gen(function* () {
    const outliving = yield* Effect.forkDetach(inner)
    yield* Deferred.await(entered)
    isBroken = true
    return outliving
  })
  let outliving: Fiber.Fiber<void, unknown> | undefined
  const noted = Effect.tap(outer, (fiber) => Effect.sync(() => void (outliving = fiber)))
  const exit = yield* Lock.withLock(noted, "a").pipe(as(yield* clientOf({ store })), Effect.exit)
  assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
  isBroken = false
  yield* Deferred.succeed(ended, undefined)
  yield* Fiber.join(outliving!)
  assert.isTrue(yield* server.isFree("a"))
})

test("An inner section ends though Redis cannot be reached", function* () {
  const server = yield* testStore()
  const { readLock, writeLock } = ReadWriteLock.make("rw")
  for (const lock of [Lock.make("a"), readLock, writeLock]) {
    yield* Effect.gen(function* () {
      yield* Lock.withLock(
        Effect.sync(() => void (server.isDown = true)),
        lock
      )
      server.isDown = false
    }).pipe(Lock.withLock(lock), as(yield* clientOf(server)))
    assert.isTrue(yield* server.isFree(lock.name))
  }
})

const { readLock, writeLock } = ReadWriteLock.make("a")

for (const [what, lock, renewal] of [
  ["a lock", Lock.make("a"), "lock/renew"],
  ["a fair lock", FairLock.make("a"), "lock/renew"],
  ["a read lock", readLock, "read_lock/renew"],
  ["a write lock", writeLock, "lock/renew"]
] as const) {
  test(`A re-entry of ${what} takes one command, its end and the count none, and the lease stays`, function* () {
    const server = yield* testStore()
    yield* Effect.gen(function* () {
      server.operations.length = 0
      assert.strictEqual(yield* Lock.withLock(Lock.holdCount(lock), lock, { leaseTime: "1 minute" }), 2)
      assert.isTrue(yield* Lock.isHeldByCurrentOwner(lock))
      assert.deepStrictEqual(server.operations, [renewal])
      assert.isAbove(Duration.toSeconds(yield* (yield* Lock.currentHolding(lock)).remaining), 50)
      const { holders } = yield* Lock.inspect(lock)
      assert.deepStrictEqual(
        holders.map(({ holdCount, remaining }) => [holdCount, Duration.toSeconds(remaining!)]),
        [[1, 60]]
      )
    }).pipe(Lock.withLock(lock, { leaseTime: "5 seconds" }), as(yield* clientOf(server)))
    assert.isTrue(yield* server.isFree("a"))
  })
}

test("A lock whose only renewed hold has ended is not renewed any more, and lasts as long as that has asked for", function* () {
  const server = yield* testStore()
  const section = yield* Lock.withLock(Effect.sleep("5 seconds"), "a").pipe(
    Effect.andThen(Effect.never),
    Lock.withLock("a", { leaseTime: "10 seconds" }),
    as(yield* clientOf(server)),
    background
  )
  yield* TestClock.adjust("29 seconds")
  assert.isUndefined(section.pollUnsafe())
  yield* TestClock.adjust("1 second")
  const exit = section.pollUnsafe()
  assert.isDefined(exit)
  assert.deepInclude(failure(exit!), { _tag: "LockLost", reason: "Expired" })
})

test("A reader whose inner hold ends while Redis cannot be reached counts on nothing that Redis does not keep", function* () {
  const server = yield* testStore()
  const [reader, writer] = [as(yield* clientOf(server)), as(yield* clientOf(server))]
  const enter = Effect.fnUntraced(function* (leaseTime: Duration.Input) {
    const scope = yield* Scope.make()
    const holding = yield* Scope.provide(Lock.scoped(readLock, { leaseTime }), scope)
    return { holding, end: Scope.close(scope, Exit.void) }
  })
  yield* Effect.gen(function* () {
    const outer = yield* enter("5 seconds")
    const inner = yield* enter("5 seconds")
    const long = yield* enter("1 minute")
    server.isDown = true
    const ending = yield* background(inner.end)
    yield* TestClock.adjust("10 millis")
    server.isDown = false
    const last = yield* enter("1 minute")
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(ending)
    yield* last.end
    yield* TestClock.adjust("5 seconds")
    yield* long.holding.ensureHeld
    assert.isTrue(Option.isNone(yield* writer(Lock.withLockIfAvailable(Effect.void, writeLock))))
    yield* outer.end
    yield* long.end
    assert.isTrue(yield* server.isFree("a"))
  }).pipe(Lock.withOwner, reader)
})

test("A waiter enters what its owner has acquired meanwhile, wherever its fiber gave way to that", function* () {
  for (let operation = 1, isParked = true; isParked; operation++) {
    const server = yield* testStore()
    const client = yield* clientOf(server)
    yield* background(Lock.withLock(Effect.never, "a").pipe(as(yield* clientOf(server))))
    // it has the turn of this client
    yield* background(Lock.withLock(Effect.void, "a").pipe(as(client)))
    yield* pass(0.2)
    const parking = new Parking(operation)
    const waiting = yield* Effect.gen(function* () {
      const waiter = yield* background(
        Lock.withLock(Effect.void, "a").pipe(Effect.provideService(Scheduler.Scheduler, parking))
      )
      yield* Effect.sleep("200 millis")
      yield* server.delete("a")
      const section = Effect.suspend(() => {
        parking.goOn()
        return Fiber.join(waiter)
      })
      return yield* Lock.withLockIfAvailable(section, "a")
    }).pipe(Lock.withOwner, as(client), background)
    yield* pass(1)
    assert.deepStrictEqual(waiting.pollUnsafe(), Exit.succeed(Option.some(undefined)), `at operation ${operation}`)
    isParked = parking.isParked
  }
})
