/**
 * Looking at locks.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer, Option, Result, Stream } from "effect"
import { Lock, LockLost, RedisLock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const looking = ({
  kind,
  options,
  suite,
  freshName,
  freshLock,
  make,
  failure,
  hold,
  outcome,
  shortLease
}: Contract): void => {
  suite("looking", (test) => {
    test("Lock.list finds the held locks that match", function* () {
      const prefix = freshName("list")
      const listed = Stream.runCollect(Stream.map(Lock.list(`${prefix}:*`), (lock) => lock.name))
      assert.deepStrictEqual(yield* listed, [])
      const found = yield* listed.pipe(Lock.withLock(make(`${prefix}:a`)), Lock.withLock(make(`${prefix}:b`)))
      assert.deepStrictEqual(found.toSorted(), [`${prefix}:a`, `${prefix}:b`])
    })

    test("Only in its section is a lock the caller's: elsewhere Lock.currentHolding fails with NotLockOwner", function* () {
      const lock = yield* freshLock
      const assertNotMine = Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(Lock.currentHolding(lock)))._tag, "NotLockOwner")
        assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
      })
      yield* assertNotMine
      assert.deepStrictEqual(yield* Lock.remainingTime(lock), Option.none())
      assert.isTrue(yield* Lock.withLock(Lock.isHeldByCurrentOwner(lock), lock))
      // another fiber of this client holds it
      const other = yield* hold(lock)
      yield* assertNotMine
      assert.isTrue(yield* other.holding.isHeld)
      yield* other.letGo
      yield* assertNotMine
    })

    test("In a section that has lost its lock, also in a nested one, Lock.currentHolding fails with LockLost", function* () {
      const lock = yield* freshLock
      let found: unknown
      const body = Effect.flip(Lock.currentHolding(lock)).pipe(
        Effect.tap((error) => Effect.sync(() => (found = error))),
        Effect.delay(shortLease),
        Effect.uninterruptible
      )
      const nested = kind.reentrant ? Lock.withLock(body, lock, { leaseTime: shortLease }) : body
      const fiber = yield* Effect.forkChild(Lock.withLock(nested, lock, { leaseTime: shortLease }))
      const error = failure(yield* outcome(fiber))
      assert.instanceOf(error, LockLost)
      assert.strictEqual(found, error)
    })

    test("Locks are inspected through a key prefix, or bound to a service", function* () {
      const lock = yield* freshLock
      const service = yield* RedisLock.RedisLock
      const prefixed = RedisLock.layerFromStore({ ...options, keyPrefix: "app[1]:" })
      yield* Effect.gen(function* () {
        assert.isTrue(yield* Lock.isLocked(lock))
        const names = yield* Stream.runCollect(Stream.map(Lock.list(lock.name), ({ name }) => name))
        assert.deepStrictEqual(names, [lock.name])
        const bound = Lock.provide(make(lock.name), service)
        assert.isFalse(yield* Lock.isLocked(bound))
        assert.isTrue(Result.isSuccess(yield* Effect.result(Lock.withLock(Effect.void, bound))))
        assert.isTrue(yield* Lock.isLocked(Lock.provide(make(`app[1]:${lock.name}`), service)))
      }).pipe(Lock.withLock(lock), Effect.provide(Layer.fresh(prefixed)))
    })
  })
}
