/**
 * A key in Redis may live longer than the lease that its holder relies on. Until it is gone, its release is repeated.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"

it.effect("the release of a writer that has read with a long lease is repeated until the key would be gone", () =>
  Effect.gen(function* () {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const server = yield* testStore()
    const service = yield* clientOf(server, { watchdogLeaseTime: "5 seconds", releaseTimeout: "1 second" })
    const { readLock, writeLock } = ReadWriteLock.make("a")
    const scope = yield* Scope.make()
    const reading = Lock.withLock(Effect.void, readLock, { leaseTime: "2 minutes" })
    yield* as(service)(Scope.provide(Lock.scoped(writeLock), scope))
    // in the writer's own scope, so that it is the writer that reads
    yield* as(service)(Scope.provide(reading, scope))
    server.isDown = true
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.join(closing)
    server.isDown = false
    assert.isFalse(yield* server.isFree("a"), "its key outlives the writer's lease")
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(yield* server.isFree("a"))
  }).pipe(Effect.scoped)
)

it.effect("a lost lock is released until the end of a lease whose renewal was not answered", () =>
  Effect.gen(function* () {
    const server = yield* testStore()
    // Redis runs the first renewal, but the connection breaks before the reply
    const store = wrappedStore(server.store, ({ fail, operation, run }) => {
      if (operation !== "lock/renew" || server.isDown) return run()
      return Effect.andThen(
        Effect.tap(run(), () => Effect.sync(() => void (server.isDown = true))),
        fail("TimedOut")
      )
    })
    const service = yield* clientOf({ store }, { watchdogLeaseTime: "30 seconds" })
    const section = yield* Effect.forkChild(Effect.flip(as(service)(Lock.withLock(Effect.never, "a"))), {
      startImmediately: true
    })
    yield* TestClock.adjust("32 seconds")
    const lost = yield* Fiber.join(section)
    assert.isTrue(lost._tag === "LockLost" && lost.reason === "RenewalFailed")
    server.isDown = false
    assert.isFalse(yield* server.isFree("a"), "Redis keeps it from the renewal on")
    yield* TestClock.adjust("2 seconds")
    assert.isTrue(yield* server.isFree("a"))
  }).pipe(Effect.scoped)
)
