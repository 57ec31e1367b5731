/**
 * Taking again what one holds.
 */
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Option, Scope } from "effect"
import { Lock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const reentry = ({
  kind,
  suite,
  isShared,
  freshName,
  freshLock,
  rival,
  pass,
  succeeded,
  holdElsewhere,
  make
}: Contract): void => {
  if (!kind.reentrant) return

  suite("re-entry", (test) => {
    test("Re-entry works anywhere down a section, through timeouts and forks, and is counted", function* () {
      const lock = yield* freshLock
      assert.strictEqual(yield* Lock.holdCount(lock), 0)
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* Lock.holdCount(lock), 1)
        const inner = Lock.holdCount(lock).pipe(Lock.withLock(lock))
        assert.strictEqual(yield* inner, 2)
        assert.strictEqual(yield* Effect.timeout(inner, "4 minutes"), 2)
        assert.strictEqual(yield* Effect.flatMap(Effect.forkChild(inner), Fiber.join), 2)
        assert.strictEqual(yield* inner.pipe(Lock.withLock(make(freshName("other")))), 2)
        assert.strictEqual(yield* Lock.holdCount(lock), 1)
        assert.isTrue(yield* Lock.isHeldByCurrentOwner(lock))
      }).pipe(Lock.withLock(lock))
      assert.strictEqual(yield* Lock.holdCount(lock), 0)
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("Re-entry works for the same fiber and in the same scope", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const outer = yield* Lock.scoped(lock)
        assert.strictEqual(yield* Lock.holdCount(lock).pipe(Lock.withLock(lock)), 2)
        const inner = yield* Effect.timeout(Lock.scoped(lock), "4 minutes")
        assert.strictEqual(inner.owner, outer.owner)
        assert.strictEqual(yield* Lock.holdCount(lock), 2)
        yield* inner.release
        assert.strictEqual(yield* Lock.holdCount(lock), 1)
        assert.isTrue(yield* outer.isHeld)
      }).pipe(Effect.scoped)
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    if (!isShared) {
      test("Re-entry does not happen between sibling fibers, even inside a section of another lock", function* () {
        const lock = yield* freshLock
        const inside = yield* Deferred.make<void>()
        const goOn = yield* Deferred.make<void>()
        yield* Effect.gen(function* () {
          const first = yield* Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(goOn)).pipe(
            Lock.withLock(lock),
            Effect.forkChild
          )
          yield* Deferred.await(inside)
          assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, lock)))
          yield* Deferred.succeed(goOn, undefined)
          yield* Fiber.join(first)
        }).pipe(Lock.withLock(make(freshName("other"))))
      })
    }

    test("Re-entry spans everything below withOwner", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        yield* Lock.scoped(lock)
        const fiber = yield* Lock.holdCount(lock).pipe(Lock.withLock(lock), Effect.scoped, Effect.forkChild)
        assert.strictEqual(yield* Fiber.join(fiber), 2)
        const stranger = Lock.withOwner(Lock.withLockIfAvailable(Effect.void, lock))
        assert.strictEqual(Option.isNone(yield* stranger), !isShared)
      }).pipe(Effect.scoped, Lock.withOwner)
    })

    test("Re-entry wakes a fiber that waits already when its owner gets the lock", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(rival(lock))
      const both = yield* Effect.forkChild(
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          const acquire = Effect.provideService(Lock.scoped(lock), Scope.Scope, scope)
          return yield* Effect.all([acquire, acquire, acquire], { concurrency: "unbounded" })
        }).pipe(Effect.scoped, Lock.withOwner)
      )
      yield* pass(Duration.millis(50))
      yield* other.letGo
      const holdings = yield* succeeded(both)
      if (!isShared) assert.strictEqual(new Set(holdings.map((holding) => holding.owner)).size, 1)
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("Re-entry never lowers the deadline, and an inner exit never frees the outer hold", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const { remaining } = yield* Lock.scoped(lock, { leaseTime: "1 hour" })
        const before = yield* remaining
        yield* Lock.withLock(Effect.void, lock, { leaseTime: "10 seconds" })
        yield* Lock.withLock(Effect.void, lock)
        const after = yield* remaining
        assert.isAbove(Duration.toMillis(after), Duration.toMillis(before) - 600_000)
        const inRedis = Option.getOrThrow(yield* Lock.remainingTime(lock))
        assert.isAbove(Duration.toMillis(inRedis), 3_000_000)
      }).pipe(Effect.scoped)
    })
  })
}
