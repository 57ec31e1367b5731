/**
 * Locks that stay taken for a while after their release.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Option, Scope } from "effect"
import { FairLock, InvalidLockOptions, Lock, MultiLock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

const long = "1 hour"

const ask = (lock: Parameters<typeof Lock.tryScoped>[0]) =>
  Effect.map(Effect.scoped(Lock.tryScoped(lock as Lock.Lock)), Option.isSome)

export const keeping = (contract: Contract): void => {
  const { elsewhere, freshLock, freshName, hold, isQuorum, kind, make, suite, succeeded, virtual } = contract

  // the client of a quorum refuses it: see unit/minHold.test.ts
  if (isQuorum && kind.mode === "exclusive") return

  suite("staying taken", (test) => {
    if (kind.mode !== "exclusive") {
      test("A lock that cannot stay taken after its release refuses minHold", function* () {
        const lock = yield* freshLock
        for (const use of [
          Lock.withLock(Effect.void, lock, { minHold: long }),
          Lock.withLock(Effect.void, make(lock.name, { minHold: long })),
          Effect.scoped(Lock.tryScoped(lock, { minHold: long }))
        ]) {
          const error = yield* Effect.flip(use as Effect.Effect<unknown, unknown>)
          assert.instanceOf(error, InvalidLockOptions)
          assert.strictEqual(error.option, "minHold")
        }
        assert.isFalse(yield* Lock.isLocked(lock))
      })
      return
    }

    test("A lock that is released before its minHold is over stays taken, and nobody holds it", function* () {
      const lock = yield* freshLock
      const holding = yield* Lock.scoped(lock, { minHold: long })
      yield* holding.release
      assert.isFalse(yield* holding.isHeld)
      assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
      assert.isTrue(yield* Lock.isLocked(lock))
      assert.isFalse(yield* ask(lock), "the same fiber does not get it")
      assert.isFalse(yield* elsewhere(ask(lock)), "another client does not get it")
      const left = Duration.toMillis(Option.getOrThrow(yield* Lock.remainingTime(lock)))
      // a tenth of a second longer, for a client that has ended by then
      assert.isAtMost(left, 3_600_100)
      assert.isAbove(left, 3_000_000)
      // an operator can free it, and tokens go on rising
      assert.isTrue(yield* elsewhere(Lock.forceRelease(lock)))
      const next = yield* Lock.scoped(lock)
      assert.isTrue(next.token > holding.token)
    })

    test("A section and a tried section leave their lock taken for its minHold, whether they succeed or fail", function* () {
      for (const section of [
        (lock: string) => Lock.withLock(Effect.void, make(lock, { minHold: long })),
        (lock: string) => Lock.withLock(Effect.fail("no"), make(lock), { minHold: long }),
        (lock: string) => Lock.withLockIfAvailable(Effect.void, make(lock), { minHold: long })
      ]) {
        const name = freshName()
        yield* Effect.exit(section(name) as Effect.Effect<unknown, unknown>)
        assert.isTrue(yield* Lock.isLocked(make(name)))
      }
    })

    test("Waiters get a lock when its minHold since the acquisition is over, not before", function* () {
      const minHold = virtual ? Duration.seconds(40) : Duration.seconds(1)
      const lock = yield* freshLock
      const now = Effect.clockWith((clock) => clock.currentTimeMillis)
      const before = yield* now
      const { holding, letGo } = yield* hold(lock, { minHold })
      const wait = Effect.andThen(Lock.scoped(lock), now).pipe(Effect.scoped)
      const waiters = [yield* Effect.forkChild(wait), yield* Effect.forkChild(elsewhere(wait))]
      yield* contract.until(Effect.sync(() => contract.denials(lock.name) > 0))
      yield* letGo
      assert.isFalse(yield* holding.isHeld)
      for (const waiter of waiters) {
        const waited = (yield* succeeded(waiter)) - before
        // wall clocks have whole milliseconds
        assert.isAtLeast(waited, Duration.toMillis(minHold) - 1)
        if (virtual) assert.isAtMost(waited, Duration.toMillis(minHold) + 2000)
      }
    })

    test("A lock that was held for its minHold is free at once, and a minHold of zero is none", function* () {
      const lock = yield* freshLock
      for (const minHold of [Duration.millis(1), Duration.zero]) {
        yield* Lock.withLock(contract.pass(Duration.millis(20)), lock, { minHold })
        assert.isFalse(yield* Lock.isLocked(lock))
      }
    })

    if (kind.reentrant) {
      test("The minHold of an inner acquisition counts when the outer one is released", function* () {
        const lock = yield* freshLock
        yield* Effect.void.pipe(Lock.withLock(lock, { minHold: long }), Lock.withLock(lock))
        assert.isTrue(yield* Lock.isLocked(lock))
      })
    }

    test("A client that closes leaves its lock taken for what is left of the minHold", function* () {
      const lock = yield* freshLock
      const scope = yield* Scope.make()
      yield* elsewhere(Scope.provide(Lock.scoped(lock, { minHold: long }), scope))
      assert.isTrue(yield* Lock.isLocked(lock))
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      assert.isTrue(yield* Lock.isLocked(lock))
    })

    test("A minHold that is no period, longer than the lease or of a member of a MultiLock is refused", function* () {
      const lock = yield* freshLock
      for (const options of [
        { minHold: -1 },
        { minHold: Number.NaN },
        { minHold: Number.POSITIVE_INFINITY },
        { minHold: 5001, leaseTime: 5000 }
      ]) {
        const error = yield* Effect.flip(Lock.withLock(Effect.void, lock, options))
        assert.instanceOf(error, InvalidLockOptions)
        assert.strictEqual((error as InvalidLockOptions).option, "minHold")
      }
      for (const both of [
        Lock.withLock(Effect.void, MultiLock.make([lock, FairLock.make(freshName())]), { minHold: long }),
        Lock.withLock(Effect.void, MultiLock.make([make(lock.name, { minHold: long }), FairLock.make(freshName())]))
      ]) {
        assert.instanceOf(yield* Effect.flip(both), InvalidLockOptions)
      }
      assert.isFalse(yield* Lock.isLocked(lock))
    })
  })
}
