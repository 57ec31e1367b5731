/**
 * Giving back, and having it taken.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Lock, LockLost } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const releasing = ({ suite, freshLock, elsewhere, outcome, failure, hold, holdElsewhere }: Contract): void => {
  suite("releasing", (test) => {
    test("An early release is final and can be repeated", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const holding = yield* Lock.scoped(lock)
        yield* holding.release
        assert.isFalse(yield* Lock.isLocked(lock))
        assert.isFalse(yield* holding.isHeld)
        yield* holding.release
        assert.strictEqual((yield* Effect.flip(holding.ensureHeld))._tag, "LockLost")
        // what somebody else holds by then is left alone when the scope closes
        const other = yield* holdElsewhere(lock)
        yield* holding.release
        yield* other.holding.ensureHeld
        yield* other.letGo
      }).pipe(Effect.scoped)
    })

    test("A forced release frees the lock, and its section fails with LockLost even if it succeeded", function* () {
      const lock = yield* freshLock
      assert.isFalse(yield* Lock.forceRelease(lock))
      const section = yield* Effect.forkChild(
        Effect.uninterruptible(
          Effect.gen(function* () {
            assert.isTrue(yield* elsewhere(Lock.forceRelease(lock)))
            return "done"
          })
        ).pipe(Lock.withLock(lock))
      )
      const error = failure(yield* outcome(section))
      assert.instanceOf(error, LockLost)
      assert.strictEqual(error.reason, "NotOwner")
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("A forced release from given owners leaves the lock alone if another owner holds it by then", function* () {
      const lock = yield* freshLock
      const first = yield* holdElsewhere(lock)
      yield* first.letGo
      const second = yield* hold(lock)
      assert.isFalse(yield* Lock.forceRelease(lock, { owners: [first.holding.owner] }))
      assert.isFalse(yield* Lock.forceRelease(lock, { owners: [] }))
      assert.isTrue(yield* Lock.isLocked(lock))
      assert.isTrue(yield* second.holding.isHeld)
      assert.isTrue(yield* Lock.forceRelease(lock, { owners: [first.holding.owner, second.holding.owner] }))
      assert.isFalse(yield* Lock.isLocked(lock))
      assert.isFalse(yield* second.holding.isHeld)
      yield* second.letGo
    })

    test("A forced release interrupts sections of its client at once, of others at their next renewal", function* () {
      const lock = yield* freshLock
      for (const who of [<A, E, R>(self: Effect.Effect<A, E, R>) => self, elsewhere]) {
        const inside = yield* Deferred.make<void>()
        const section = yield* Effect.andThen(Deferred.succeed(inside, undefined), Effect.never).pipe(
          Lock.withLock(lock),
          Effect.forkChild
        )
        yield* Deferred.await(inside)
        yield* who(Lock.forceRelease(lock)) as Effect.Effect<boolean>
        const error = failure(yield* outcome(section))
        assert.strictEqual((error as LockLost).reason, "NotOwner")
      }
    })

    test("A section's own failure wins over the loss", function* () {
      const lock = yield* freshLock
      // on memory it may hear of the loss before it fails
      const failing = Effect.uninterruptible(Effect.andThen(elsewhere(Lock.forceRelease(lock)), Effect.fail("mine")))
      const error = yield* failing.pipe(Lock.withLock(lock), Effect.flip)
      assert.strictEqual(error, "mine")
    })
  })
}
