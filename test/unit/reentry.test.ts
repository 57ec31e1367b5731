/**
 * Re-entering at a server that does not answer, and after a loss.
 */
import { failure } from "../kit/exits.ts"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"

describe("a re-entry that is not answered", () => {
  it.effect("A re-entry that is not answered can be interrupted, and the outer hold stays", () =>
    Effect.gen(function* () {
      const server = yield* testStore()
      yield* Effect.gen(function* () {
        const holding = yield* Lock.currentHolding("a")
        server.delay = () => 60_000
        const inner = yield* Effect.forkChild(Lock.withLock(Effect.void, "a"), { startImmediately: true })
        const interrupted = yield* Effect.forkChild(Fiber.interrupt(inner), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        assert.isDefined(interrupted.pollUnsafe())
        yield* holding.ensureHeld
        server.delay = () => 0
        assert.strictEqual(yield* Lock.withLock(Lock.holdCount("a"), "a"), 2)
      }).pipe(Lock.withLock("a"), as(yield* clientOf(server)))
      assert.isTrue(yield* server.isFree("a"))
    })
  )

  it.effect("A re-entry that is not answered does not keep a section going whose lock is lost", () =>
    Effect.gen(function* () {
      const server = yield* testStore()
      server.delay = (operation) => (operation === "lock/acquire" ? 0 : 60_000)
      const section = yield* Lock.withLock(Effect.void, "a").pipe(
        Lock.withLock("a", { leaseTime: "5 seconds" }),
        as(yield* clientOf(server)),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust("5 seconds")
      const exit = section.pollUnsafe()
      assert.isDefined(exit)
      assert.strictEqual(failure(exit!)._tag, "LockLost")
    })
  )
})

it.effect("awaitLost of a released inner hold reports no later loss of the outer one", () =>
  Effect.gen(function* () {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const server = yield* testStore()
    yield* Effect.gen(function* () {
      const outer = yield* Lock.scoped("a")
      const scope = yield* Scope.make()
      const inner = yield* Scope.provide(Lock.scoped("a"), scope)
      const told = yield* Effect.forkChild(Effect.exit(outer.awaitLost), { startImmediately: true })
      const earlier = yield* Effect.forkChild(Effect.exit(inner.awaitLost), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      yield* server.delete("a")
      assert.strictEqual((yield* Effect.flip(outer.renew()))._tag, "LockLost")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(told)))
      const later = yield* Effect.forkChild(Effect.exit(inner.awaitLost), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(earlier.pollUnsafe())
      assert.isUndefined(later.pollUnsafe())
    }).pipe(Effect.scoped, as(yield* clientOf(server)))
  }).pipe(Effect.scoped)
)

it.effect("awaitLost of an inner hold that was lost before its release still reports that loss", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.scoped)
)
