/**
 * A writer that also reads: only it can end what it would wait for, so its reading never waits behind others.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

const fork = background

/** Lets time pass, and returns whether all have ended. */
const haveEnded = Effect.fnUntraced(function* (fibers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
  yield* TestClock.adjust("1 minute")
  return fibers.every((fiber) => fiber.pollUnsafe() !== undefined)
})

for (const mayHaveRun of [false, true]) {
  test(`It is let in after a failure${mayHaveRun ? " with unknown outcome" : ""}, though another fiber of its process waits to read`, function* () {
    const server = yield* testStore()
    const client = as(yield* clientOf(server))
    const goOn = yield* Deferred.make<void>()
    const writer = yield* Deferred.await(goOn).pipe(
      Effect.andThen(Lock.withLock(Effect.succeed("read"), readLock)),
      Lock.withLock(writeLock),
      client,
      fork
    )
    const reader = yield* Lock.withLock(Effect.void, readLock).pipe(client, fork)
    yield* TestClock.adjust("1 second")
    let refused = 0
    server.reason = mayHaveRun ? "TimedOut" : "NotConnected"
    server.refuses = (operation) => operation === "read_lock/acquire" && refused++ < 2
    yield* Deferred.succeed(goOn, undefined)
    assert.isTrue(yield* haveEnded([writer, reader]))
    assert.isTrue(yield* server.isFree("a"))
  })
}

test("A writer that is granted its lock lets its owner's reader in, though others of its process wait to read before it", function* () {
  const server = yield* testStore()
  const [here, elsewhere] = [as(yield* clientOf(server)), as(yield* clientOf(server))]
  const [mayRead, hasRead] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const holder = yield* Effect.sleep("10 seconds").pipe(Lock.withLock(writeLock), elsewhere, fork)
  yield* TestClock.adjust("1 second")
  const owner = yield* Effect.all(
    [
      Deferred.await(hasRead).pipe(Lock.withLock(writeLock)),
      Effect.andThen(Deferred.await(mayRead), Lock.withLock(Deferred.succeed(hasRead, undefined), readLock))
    ],
    { concurrency: "unbounded", discard: true }
  ).pipe(Lock.withOwner, here, fork)
  yield* TestClock.adjust("1 second")
  const stranger = yield* Lock.withLock(Effect.void, readLock).pipe(here, fork)
  yield* TestClock.adjust("1 second")
  yield* Deferred.succeed(mayRead, undefined)
  yield* TestClock.adjust("1 second")
  assert.isTrue(yield* haveEnded([holder, stranger, owner]))
  assert.isTrue(yield* server.isFree("a"))
})

test("A writer that is granted its lock lets all readers of its owner in at once", function* () {
  const server = yield* testStore()
  const here = as(yield* clientOf(server, { fallbackInterval: "1 hour" }))
  const elsewhere = as(yield* clientOf(server))
  const read: Array<number> = []
  const reading = (number: number) =>
    Effect.sync(() => read.push(number))
      .pipe(Lock.withLock(readLock))
      .pipe(Effect.delay("1 second"))
  yield* Effect.sleep("5 seconds").pipe(Lock.withLock(writeLock), elsewhere, fork)
  yield* TestClock.adjust(1)
  const writing = Lock.withLock(Effect.sleep("10 seconds"), writeLock)
  const owner = yield* Effect.all([writing, reading(1), reading(2)], { concurrency: "unbounded" }).pipe(
    Lock.withOwner,
    here,
    fork
  )
  yield* TestClock.adjust("4 seconds")
  assert.deepStrictEqual(read, [])
  yield* TestClock.adjust("1 second")
  assert.sameMembers(read, [1, 2])
  yield* TestClock.adjust("10 seconds")
  yield* Fiber.join(owner)
})

test("A write lock that is lost in an outage is given back after it, though its own read was prolonged meanwhile, with an unknown outcome", function* () {
  expectWarning(/^The lock's scope has closed, but its release went wrong/)
  const server = yield* testStore()
  let isAway = false
  const store = wrappedStore(server.store, ({ fail, operation, run }) =>
    Effect.suspend(() => {
      if (!isAway) return run()
      return operation === "read_lock/renew" ? Effect.andThen(run(), fail("ConnectionLost")) : fail()
    })
  )
  const [here, elsewhere] = [as(yield* clientOf({ store })), as(yield* clientOf(server))]
  const writing = yield* Scope.make()
  const read = yield* Scope.provide(Lock.scoped(writeLock, { leaseTime: "10 seconds" }), writing).pipe(
    Effect.andThen(Lock.scoped(readLock, { leaseTime: "1 minute" })),
    Lock.withOwner,
    here
  )
  isAway = true
  yield* TestClock.adjust("11 seconds")
  yield* Scope.close(writing, Exit.void)
  yield* TestClock.adjust("40 seconds")
  assert.isTrue(Exit.isFailure(yield* Effect.exit(read.renew("1 minute"))))
  yield* TestClock.adjust("50 seconds")
  isAway = false
  yield* TestClock.adjust("2 seconds")
  assert.isTrue(Option.isSome(yield* elsewhere(Lock.tryScoped(readLock))))
})
