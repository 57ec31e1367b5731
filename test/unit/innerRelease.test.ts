/**
 * The release of an inner hold: the outer one stays, and frees everything in the end.
 */
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { pass } from "../kit/passTime.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { type Outcome, wrappedStore } from "../kit/wrappedStore.ts"
import { test, testQuietly } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

for (const [kind, lock] of Object.entries({
  "a lock": Lock.make("a"),
  "a read lock": readLock,
  "a write lock": writeLock
})) {
  describe(`the inner release of ${kind}`, () => {
    test(`The inner release of ${kind} is repeated when Redis cannot be reached for a moment`, function* () {
      const [server, service] = yield* storeWith({})
      let outer = 0
      const blip = Effect.sync(() => (server.isDown = true)).pipe(
        Effect.andThen(
          Effect.forkDetach(Effect.sleep("1 second").pipe(Effect.andThen(Effect.sync(() => (server.isDown = false)))))
        )
      )
      const section = Lock.withLock(
        Effect.andThen(
          Lock.withLock(blip, lock),
          Effect.sync(() => outer++)
        ),
        lock
      )
      const running = yield* background(as(service)(section))
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(running)))
      assert.strictEqual(outer, 1)
      assert.isTrue(yield* server.isFree("a"))
    })

    test(`The inner release of ${kind} fails after the release timeout, and the outer one still frees the lock`, function* () {
      const [server, service] = yield* storeWith({ watchdogLeaseTime: "5 minutes", releaseTimeout: "3 seconds" })
      const down = Effect.sync(() => (server.isDown = true))
      const inner = Effect.exit(Lock.withLock(down, lock))
      const outcome: Array<Exit.Exit<unknown, unknown>> = []
      const section = Lock.withLock(
        Effect.map(inner, (exit) => {
          outcome.push(exit)
          server.isDown = false
        }),
        lock
      )
      const running = yield* background(as(service)(section))
      yield* TestClock.adjust("2 seconds")
      assert.lengthOf(outcome, 0)
      yield* TestClock.adjust("3 seconds")
      assert.isTrue(Exit.isFailure(outcome[0]!))
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(running)))
      assert.isTrue(yield* server.isFree("a"))
    })
  })
}

test("An inner release that failed is left alone once its owner has entered again", function* () {
  const [server, service] = yield* storeWith({})
  const enter = (scope: Scope.Scope) => as(service)(Scope.provide(Lock.scoped(readLock), scope))
  const [outer, inner, later] = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()]
  yield* Effect.gen(function* () {
    yield* enter(outer)
    yield* enter(inner)
    server.refuses = (operation) => operation === "read_lock/remove_hold"
    const ending = yield* background(Scope.close(inner, Exit.void))
    yield* TestClock.adjust("10 millis")
    yield* enter(later)
    server.refuses = () => false
    yield* TestClock.adjust("5 seconds")
    yield* Fiber.join(ending)
    const releases = server.operations.filter((operation) => operation === "read_lock/remove_hold")
    assert.lengthOf(releases, 0)
    yield* Scope.close(outer, Exit.void)
    assert.isFalse(yield* server.isFree("a"), "the last one still reads")
    yield* Scope.close(later, Exit.void)
    assert.isTrue(yield* server.isFree("a"))
  }).pipe(as(service), Lock.withOwner)
})

testQuietly(
  "A late release of a reader's inner hold does not end a later re-entry, which a writer would take for gone",
  function* () {
    const server = yield* testStore()
    const late: Array<Outcome> = []
    const store = wrappedStore(server.store, ({ fail, operation, run }) => {
      if (late.length > 0 || operation !== "read_lock/remove_hold") return run()
      late.push(run())
      return fail("ConnectionLost")
    })
    const reader = as(yield* clientOf({ store }))
    const writer = as(yield* clientOf(server))
    const entered = yield* Deferred.make<void>()
    const reading = yield* background(
      reader(
        Effect.gen(function* () {
          yield* Effect.ignore(Lock.withLock(Effect.void, readLock, { leaseTime: "1 minute" }))
          yield* Effect.andThen(Deferred.succeed(entered, undefined), Effect.never).pipe(
            Lock.withLock(readLock, { leaseTime: "1 minute" })
          )
        }).pipe(Lock.withLock(readLock, { leaseTime: "5 seconds" }))
      )
    )
    while (late.length === 0) yield* pass(0.1)
    // as late as it may come
    yield* pass(server.store.commandLifeMillis / 1000 - 0.2)
    yield* late[0]!
    while (!(yield* Deferred.isDone(entered))) yield* pass(0.1)
    // longer than the outer lease
    yield* pass(6)
    assert.isUndefined(reading.pollUnsafe())
    const writing = yield* writer(Lock.withLockIfAvailable(Effect.void, writeLock))
    assert.strictEqual(writing._tag, "None", "a reader holds the lock still")
    yield* Fiber.interrupt(reading)
  }
)
