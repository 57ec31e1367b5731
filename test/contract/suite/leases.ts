/**
 * Leases: fixed ones, and those that the watchdog renews.
 */
import { assert } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Option } from "effect"
import { Lock, LockLost } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const leases = ({
  kind,
  suite,
  freshLock,
  rival,
  elsewhere,
  hasty,
  hold,
  renewed,
  virtual,
  pass,
  outcome,
  succeeded,
  failure,
  shortLease,
  watchdogLease
}: Contract): void => {
  suite("a lease", (test) => {
    test("A fixed lease is never renewed: the section is interrupted with LockLost", function* () {
      const lock = yield* freshLock
      let interrupted = false
      const fiber = yield* Effect.never.pipe(
        Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
        Lock.withLock(lock, { leaseTime: shortLease }),
        Effect.forkChild
      )
      const error = failure(yield* outcome(fiber))
      assert.instanceOf(error, LockLost)
      assert.strictEqual(error.reason, "Expired")
      assert.isTrue(interrupted)
      assert.strictEqual(yield* Lock.withLock(Effect.succeed("next"), lock), "next")
    })

    test("A lease that has run out is seen by the first check", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const holding = yield* Lock.scoped(lock, { leaseTime: shortLease })
        if (virtual) {
          assert.isTrue(yield* holding.isHeld)
          yield* holding.ensureHeld
          assert.isAbove(Duration.toMillis(yield* holding.remaining), 0)
        }
        const lost = yield* Effect.forkChild(Effect.exit(holding.awaitLost), { startImmediately: true })
        yield* pass(shortLease)
        assert.isFalse(yield* holding.isHeld)
        assert.strictEqual(Duration.toMillis(yield* holding.remaining), 0)
        const error = yield* Effect.flip(holding.ensureHeld)
        assert.strictEqual(error.reason, "Expired")
        assert.strictEqual(failure(yield* Fiber.join(lost)), error)
        assert.strictEqual(yield* Effect.flip(holding.release), error)
      }).pipe(Effect.scoped)
    })

    test("A waiter gets the lock when the lease of its holder is over, whose late release fails", function* () {
      const lock = yield* freshLock
      const startedAt = yield* Clock.currentTimeMillis
      const holder = yield* hold(rival(lock), { leaseTime: shortLease })
      const { isHeld, release } = holder.holding
      const waiting = yield* Effect.forkChild(elsewhere(Lock.withLock(isHeld, lock)))
      assert.isFalse(yield* succeeded(waiting), "both held it")
      // a message that nobody sends would be waited for as long as the fallback interval
      if (virtual) {
        assert.isBelow((yield* Clock.currentTimeMillis) - startedAt, Duration.toMillis(shortLease) + 900)
      }
      assert.strictEqual((yield* Effect.flip(release)).reason, "Expired")
      yield* holder.letGo
    })

    test("A lease without a length is renewed by the watchdog while the lock is held", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const holding = yield* Lock.currentHolding(lock)
        yield* renewed(lock, 3)
        yield* holding.ensureHeld
        assert.isTrue(Option.isNone(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, rival(lock)))))
      }).pipe(Lock.withLock(lock), hasty)
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    if (kind.reentrant) {
      test("The lease of a fixed outer hold is renewed only while an inner hold needs it", function* () {
        const lock = yield* freshLock
        yield* Effect.gen(function* () {
          const outer = yield* Lock.scoped(lock, { leaseTime: shortLease })
          yield* Lock.withLock(renewed(lock, 1), lock)
          yield* outer.ensureHeld
          yield* pass(Duration.times(watchdogLease, 1.1))
          assert.isFalse(yield* outer.isHeld)
        }).pipe(Effect.scoped, hasty)
      })
    }

    test("A lease can be renewed by hand, and is never shortened", function* () {
      const lock = yield* freshLock
      yield* Effect.gen(function* () {
        const holding = yield* Lock.scoped(lock, { leaseTime: "10 seconds" })
        yield* holding.renew("1 hour")
        assert.isAbove(Duration.toMinutes(yield* holding.remaining), 58)
        yield* holding.renew("1 second")
        assert.isAbove(Duration.toMinutes(yield* holding.remaining), 58)
        assert.isAbove(Duration.toMinutes(Option.getOrThrow(yield* Lock.remainingTime(lock))), 58)
        const error = yield* Effect.flip(holding.renew(0))
        assert.strictEqual(error._tag, "InvalidLockOptions")
        const endless = yield* Effect.flip(holding.renew(Number.POSITIVE_INFINITY))
        assert.strictEqual(endless._tag, "InvalidLockOptions")
        assert.include(endless.message, "it must be finite")
        // without it the lease is one of the watchdog's, and not renewed either
        assert.notInclude(endless.message, "until released")
      }).pipe(Effect.scoped)
    })
  })
}
