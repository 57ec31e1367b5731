/**
 * Asking without waiting.
 */
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Lock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const trying = ({ suite, freshLock, rival, holdElsewhere }: Contract): void => {
  suite("asking without waiting", (it) => {
    it.effect("Trying gives the lock, or None", () =>
      Effect.gen(function* () {
        const lock = yield* freshLock
        const other = yield* holdElsewhere(rival(lock))
        assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(lock))))
        assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, lock)))
        yield* other.letGo
        assert.isTrue(Option.isSome(yield* Effect.scoped(Lock.tryScoped(lock))))
        assert.deepStrictEqual(yield* Lock.withLockIfAvailable(Effect.succeed(7), lock), Option.some(7))
        assert.isFalse(yield* Lock.isLocked(lock))
      })
    )
  })
}
