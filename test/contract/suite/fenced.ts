/**
 * What fenced locks add: tokens that are a counter.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Lock } from "effect-redis-lock"
import type { AnyLock, Contract } from "./contract.ts"

export const fencing = ({ elsewhere, freshLock, freshName, make, pass, suite, virtual }: Contract): void => {
  const tokenOf = (lock: AnyLock) =>
    Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock))

  suite("a counter", (test) => {
    test("A fenced lock counts the grants of the name across clients, but no re-entries or denials", function* () {
      const lock = yield* freshLock
      assert.strictEqual(yield* tokenOf(lock), 1n)
      assert.strictEqual(yield* elsewhere(tokenOf(lock)), 2n)
      yield* Effect.gen(function* () {
        assert.strictEqual((yield* Lock.currentHolding(lock)).token, 3n)
        assert.strictEqual(yield* tokenOf(lock), 3n)
        yield* elsewhere(Lock.withLockIfAvailable(Effect.void, lock))
        yield* elsewhere(Lock.forceRelease(lock))
      }).pipe(Lock.withLock(lock), Effect.flip)
      assert.strictEqual(yield* tokenOf(lock), 4n)
    })

    test("A plain lock of the same name continues the counter of a fenced lock", function* () {
      const lock = yield* freshLock
      assert.strictEqual(yield* tokenOf(lock), 1n)
      assert.strictEqual(yield* tokenOf(Lock.make(lock.name)), 2n)
      assert.strictEqual(yield* tokenOf(lock), 3n)
      if (virtual) yield* pass(Duration.days(40))
      assert.strictEqual(yield* tokenOf(lock), 4n)
    })

    test("A fenced lock continues from the token of an earlier plain lock, which then does not expire", function* () {
      const name = freshName()
      const plain = yield* tokenOf(Lock.make(name))
      assert.strictEqual(yield* tokenOf(make(name)), plain + 1n)
      if (virtual) yield* pass(Duration.days(40))
      assert.strictEqual(yield* tokenOf(make(name)), plain + 2n)
    })
  })
}
