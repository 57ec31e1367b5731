/**
 * Asking without waiting.
 */
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Lock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const trying = ({ elsewhere, freshLock, holdElsewhere, kind, rival, suite }: Contract): void => {
  suite("asking without waiting", (test) => {
    test("Trying gives the lock, or None", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(rival(lock))
      assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(lock))))
      assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, lock)))
      yield* other.letGo
      assert.isTrue(Option.isSome(yield* Effect.scoped(Lock.tryScoped(lock))))
      assert.deepStrictEqual(yield* Lock.withLockIfAvailable(Effect.succeed(7), lock), Option.some(7))
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    if (kind.reentrant) {
      test("Trying re-enters, and others are refused until the last release", function* () {
        const lock = yield* freshLock
        const getsIn = Effect.map(Lock.withLockIfAvailable(Effect.void, rival(lock)), Option.isSome)
        const others = Effect.all([Lock.withOwner(getsIn), elsewhere(getsIn)])
        const outer = Option.getOrThrow(yield* Lock.tryScoped(lock))
        const inner = Option.getOrThrow(yield* Lock.tryScoped(lock))
        assert.deepStrictEqual(yield* others, [false, false])
        yield* inner.release
        assert.deepStrictEqual(yield* others, [false, false])
        yield* outer.release
        assert.deepStrictEqual(yield* others, [true, true])
      })
    }
  })
}
