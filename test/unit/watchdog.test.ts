/**
 * Renewals that fail at an awkward moment.
 */
import { assert, describe } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Option } from "effect"
import { type AcquireError, Lock, LockLost, type LockStore, MultiLock, ReadWriteLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

describe("the watchdog", () => {
  test("The watchdog renews a reader's outer hold beyond the fixed lease of an inner one", function* () {
    const client = yield* clientOf(yield* testStore())
    const { readLock } = ReadWriteLock.make("a")
    const section = yield* Effect.sleep("60 seconds").pipe(
      Lock.withLock(readLock, { leaseTime: "2 minutes" }),
      Effect.andThen(Effect.sleep("140 seconds")),
      Effect.as("done"),
      Lock.withLock(readLock),
      as(client),
      Effect.forkChild
    )
    for (let i = 0; i < 21; i++) yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* Fiber.join(section), "done")
  })

  test("The watchdog watches the outer hold of a fixed lease although a renewal for the inner one fails after that has ended", function* () {
    const server = yield* testStore()
    let renewals = 0
    const client = yield* clientOf(
      {
        ...server,
        store: wrappedStore(server.store, ({ fail, operation, run }) =>
          // the first is the re-entry
          operation === "lock/renew" && renewals++ > 0 ? Effect.andThen(Effect.sleep(300), fail()) : run()
        )
      },
      { watchdogLeaseTime: 1200 }
    )
    const section = yield* Effect.sleep(500).pipe(
      Lock.withLock("a"),
      Effect.andThen(Effect.never),
      Lock.withLock("a", { leaseTime: 1000 }),
      as(client),
      Effect.forkChild
    )
    // asked for at 400, gone when the inner section ends at 500, refused at 700
    yield* TestClock.adjust(1100)
    assert.isUndefined(section.pollUnsafe())
    yield* TestClock.adjust(100)
    const exit = section.pollUnsafe()
    assert.isTrue(exit !== undefined && Exit.isFailure(exit))
    const error = Option.getOrThrow(Cause.findErrorOption((exit as Exit.Failure<never, AcquireError | LockLost>).cause))
    assert.instanceOf(error, LockLost)
  })

  /** A server whose replies to an operation are on their way for so long. */
  const answeringLate = Effect.fnUntraced(function* (operation: LockStore.Operation, lateMillis: number) {
    const server = yield* testStore()
    const store = wrappedStore(server.store, (request) =>
      request.operation === operation ? Effect.tap(request.run(), () => Effect.sleep(lateMillis)) : request.run()
    )
    return { ...server, store }
  })

  test("A renewed lease counts from when its renewal was sent, however long the reply takes", function* () {
    const server = yield* answeringLate("lock/renew", 400)
    yield* Effect.gen(function* () {
      const holding = yield* Lock.scoped("a")
      while (!server.operations.includes("lock/renew")) yield* TestClock.adjust(10)
      const before = Duration.toMillis(yield* holding.remaining)
      yield* TestClock.adjust(400)
      const after = Duration.toMillis(yield* holding.remaining)
      assert.isAbove(after, before, "it is renewed")
      assert.isAtMost(after, 3000 - 400)
    }).pipe(Effect.scoped, as(yield* clientOf(server, { watchdogLeaseTime: 3000 })))
  })

  test("A hold tells that its renewal has failed or is not answered, until one succeeds", function* () {
    const [server, client] = yield* storeWith({ watchdogLeaseTime: "30 seconds" })
    yield* Effect.gen(function* () {
      const holding = yield* Lock.scoped("a")
      const both = yield* Lock.scoped(MultiLock.make([Lock.make("b"), Lock.make("c")]))
      const seen: Array<ReadonlyArray<string | undefined>> = []
      const look = Effect.map(
        Effect.forEach([holding, both], ({ renewalFailure }) => renewalFailure),
        (failures) => void seen.push(failures.map((failure) => Option.getOrUndefined(failure)?.reason))
      )
      yield* TestClock.adjust("9 seconds")
      server.isDown = true
      yield* look
      yield* TestClock.adjust("2 seconds")
      yield* look
      server.isDown = false
      yield* TestClock.adjust("2 seconds")
      yield* look
      server.delay = () => 5000
      yield* TestClock.adjust("10 seconds")
      yield* look
      yield* TestClock.adjust("5 seconds")
      yield* look
      server.delay = () => 0
      const none = [undefined, undefined]
      assert.deepStrictEqual(seen, [none, ["NotConnected", "NotConnected"], none, ["TimedOut", "TimedOut"], none])
    }).pipe(Effect.scoped, as(client))
  })

  test("A renewal by the holder extends the lease even if its caller was interrupted on the way", function* () {
    const server = yield* answeringLate("lock/renew", 200)
    yield* Effect.gen(function* () {
      const holding = yield* Lock.scoped("a", { leaseTime: "10 seconds" })
      yield* TestClock.adjust("5 seconds")
      const renewal = yield* background(holding.renew("10 seconds"))
      yield* TestClock.adjust(100)
      yield* Fiber.interrupt(renewal)
      yield* TestClock.adjust(100)
      assert.isAbove(Duration.toMillis(yield* holding.remaining), 9000)
    }).pipe(Effect.scoped, as(yield* clientOf(server)))
  })
})
