/**
 * A key in Redis may live longer than the lease that its holder relies on. Until it is gone, its release is repeated.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { as, clientOf, testStore } from "../kit/testStore.ts"
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
