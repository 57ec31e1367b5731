/**
 * Re-entering at a server that does not answer, and after a loss.
 */
import { failure } from "../kit/exits.ts"
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

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
