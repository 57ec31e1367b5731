/**
 * The release of an inner hold: the outer one stays, and frees everything in the end.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { as, clientOf, testStore } from "../kit/testStore.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

for (const [kind, lock] of Object.entries({
  "a lock": Lock.make("a"),
  "a read lock": readLock,
  "a write lock": writeLock
})) {
  describe(`the inner release of ${kind}`, () => {
    it.effect(`The inner release of ${kind} is repeated when Redis cannot be reached for a moment`, () =>
      Effect.gen(function* () {
        const server = yield* testStore()
        const service = yield* clientOf(server)
        let outer = 0
        const blip = Effect.andThen(
          Effect.sync(() => (server.isDown = true)),
          Effect.forkDetach(
            Effect.andThen(
              Effect.sleep("1 second"),
              Effect.sync(() => (server.isDown = false))
            )
          )
        )
        const section = Lock.withLock(
          Effect.andThen(
            Lock.withLock(blip, lock),
            Effect.sync(() => outer++)
          ),
          lock
        )
        const running = yield* Effect.forkChild(as(service)(section), { startImmediately: true })
        yield* TestClock.adjust("10 seconds")
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(running)))
        assert.strictEqual(outer, 1)
        assert.isTrue(yield* server.isFree("a"))
      }).pipe(Effect.scoped)
    )

    it.effect(
      `The inner release of ${kind} fails after the release timeout, and the outer one still frees the lock`,
      () =>
        Effect.gen(function* () {
          const server = yield* testStore()
          const service = yield* clientOf(server, { watchdogLeaseTime: "5 minutes", releaseTimeout: "3 seconds" })
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
          const running = yield* Effect.forkChild(as(service)(section), { startImmediately: true })
          yield* TestClock.adjust("2 seconds")
          assert.lengthOf(outcome, 0)
          yield* TestClock.adjust("3 seconds")
          assert.isTrue(Exit.isFailure(outcome[0]!))
          assert.isTrue(Exit.isSuccess(yield* Fiber.await(running)))
          assert.isTrue(yield* server.isFree("a"))
        }).pipe(Effect.scoped)
    )
  })
}

it.effect("An inner release that failed is left alone once its owner has entered again", () =>
  Effect.gen(function* () {
    const server = yield* testStore()
    const service = yield* clientOf(server)
    const enter = (scope: Scope.Scope) => as(service)(Scope.provide(Lock.scoped(readLock), scope))
    const [outer, inner, later] = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()]
    yield* Effect.gen(function* () {
      yield* enter(outer)
      yield* enter(inner)
      server.refuses = (operation) => operation === "read_lock/remove_hold"
      const ending = yield* Effect.forkChild(Scope.close(inner, Exit.void), { startImmediately: true })
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
  }).pipe(Effect.scoped)
)
