/**
 * What non-reentrant locks add: a refusal where asking again would be waiting for oneself.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Lock, LockReentered } from "effect-redis-lock"
import type { AnyLock, Contract } from "./contract.ts"

/** Every way of asking again is refused at once, and does no harm. */
const assertRefused = (lock: AnyLock) =>
  Effect.gen(function* () {
    for (const again of [
      Lock.withLock(Effect.void, lock),
      Lock.withLock(Effect.void, lock, { waitTime: 0 }),
      Lock.withLock(Effect.void, lock, { waitTime: "1 hour" }),
      Lock.withLockIfAvailable(Effect.void, lock),
      Effect.scoped(Lock.scoped(lock)),
      Effect.scoped(Lock.tryScoped(lock))
    ]) {
      const error = yield* Effect.flip(again as Effect.Effect<unknown, Effect.Error<typeof again>>)
      assert.instanceOf(error, LockReentered)
      assert.strictEqual(error.attempt, "reenter")
      assert.strictEqual(error.lock, lock.name)
    }
    assert.strictEqual(yield* Lock.holdCount(lock), 1)
    assert.isTrue(yield* Lock.isHeldByCurrentOwner(lock))
    yield* (yield* Lock.currentHolding(lock)).ensureHeld
  })

export const refusing = ({ freshLock, suite }: Contract): void => {
  suite("asking again", (test) => {
    test("Re-entry is refused in a section, even in a timeout or another fiber below it", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        yield* assertRefused(lock)
        yield* Effect.timeout(assertRefused(lock), "1 hour")
        yield* Fiber.join(yield* Effect.forkChild(assertRefused(lock)))
      }).pipe(Lock.withLock(lock))
      assert.isFalse(yield* Lock.isLocked(lock))
      assert.strictEqual(yield* Lock.withLock(Effect.succeed(1), lock), 1)
    })

    test("Re-entry is refused in the same fiber and in the same scope", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        yield* Lock.scoped(lock)
        yield* assertRefused(lock)
        const error = yield* Effect.flip(Effect.timeout(Lock.scoped(lock), "1 hour"))
        assert.instanceOf(error, LockReentered)
        assert.instanceOf(yield* Effect.flip(Effect.timeout(Lock.tryScoped(lock), "1 hour")), LockReentered)
      }).pipe(Effect.scoped)
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("Re-entry is refused everywhere below withOwner", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        yield* Lock.scoped(lock)
        yield* Fiber.join(yield* Effect.forkChild(assertRefused(lock)))
      }).pipe(Effect.scoped, Lock.withOwner)
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("A non-reentrant lock is refused if the owner holds the plain lock of the name", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(Lock.withLock(Effect.void, lock))
        assert.instanceOf(error, LockReentered)
      }).pipe(Lock.withLock(lock.name))
    })
  })
}
