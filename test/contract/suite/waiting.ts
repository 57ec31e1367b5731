/**
 * Waiting, and giving it up.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { Lock, LockTimeout } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const waiting = ({
  suite,
  freshLock,
  rival,
  pass,
  outcome,
  succeeded,
  failure,
  holdElsewhere,
  virtual
}: Contract): void => {
  suite("waiting", (test) => {
    test("A wait ends with LockTimeout after waitTime, and says who holds the lock", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(rival(lock))
      const fiber = yield* Lock.withLock(Effect.void, lock, { waitTime: 300 }).pipe(Effect.forkChild)
      const error = failure(yield* outcome(fiber))
      assert.instanceOf(error, LockTimeout)
      assert.strictEqual(error.lock, lock.name)
      assert.isAtLeast(Duration.toMillis(error.waited), 300)
      if (virtual) assert.isAtMost(Duration.toMillis(error.waited), 400)
      assert.strictEqual(error.holder?.owner, other.holding.owner)
      assert.include(error.message, other.holding.owner)
      yield* other.letGo
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("A wait with waitTime zero asks once", function* () {
      const lock = yield* freshLock
      assert.strictEqual(yield* Lock.withLock(Effect.succeed(1), lock, { waitTime: 0 }), 1)
      const other = yield* holdElsewhere(rival(lock))
      const error = yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
      assert.strictEqual(error._tag, "LockTimeout")
      yield* other.letGo
    })

    test("A wait times out in the local queue, too", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const waiters = yield* Effect.forEach([1, 2, 3], () =>
          Lock.withOwner(Lock.withLock(Effect.void, lock, { waitTime: 100 })).pipe(
            Effect.forkDetach({ startImmediately: true })
          )
        )
        const { owner } = yield* Lock.currentHolding(rival(lock))
        for (const waiter of waiters) {
          const error = failure(yield* outcome(waiter))
          assert.strictEqual((error as LockTimeout).holder?.owner, owner)
        }
      }).pipe(Lock.withLock(rival(lock)))
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("A wait can be interrupted, and the next waiter gets its turn", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(rival(lock))
      const [first, second] = yield* Effect.forEach([1, 2], (n) =>
        Effect.succeed(n).pipe(Lock.withLock(lock), Effect.forkChild({ startImmediately: true }))
      )
      yield* pass(Duration.millis(50))
      yield* Fiber.interrupt(first!)
      yield* other.letGo
      assert.strictEqual(yield* succeeded(second!), 2)
      assert.isFalse(yield* Lock.isLocked(lock))
    })
  })
}
