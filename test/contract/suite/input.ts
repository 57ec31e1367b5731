/**
 * Names and options that cannot be, and keys that hold something else.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import {
  type AcquireError,
  InvalidLockName,
  InvalidLockOptions,
  Lock,
  LockStore,
  type RedisLock
} from "effect-redis-lock"
import type { Contract } from "./contract.ts"
import { runOperation } from "../../kit/storeOperations.ts"

export const input = ({ suite, freshLock, make }: Contract): void => {
  suite("bad input", (it) => {
    it.effect("Bad input fails with a typed error", () =>
      Effect.gen(function* () {
        for (const name of ["", "x".repeat(1025), "é".repeat(513), "a\0b"]) {
          const lock = make(name)
          for (const use of [
            Lock.withLock(Effect.void, lock),
            Effect.scoped(Lock.tryScoped(lock)),
            Lock.isLocked(lock),
            Lock.forceRelease(lock)
          ]) {
            assert.instanceOf(yield* Effect.flip(use as Effect.Effect<unknown, unknown>), InvalidLockName)
          }
        }
        const lock = yield* freshLock
        const bad: ReadonlyArray<Lock.AcquireOptions> = [
          { waitTime: -1 },
          { waitTime: Number.NaN },
          { waitTime: 2 ** 53 + 2 },
          { waitTime: "soon" as "1 second" },
          { leaseTime: 0 },
          { leaseTime: -1 },
          { leaseTime: Number.NaN },
          { leaseTime: Number.POSITIVE_INFINITY },
          { leaseTime: "Infinity" },
          { leaseTime: 2 ** 53 + 2 }
        ]
        for (const options of bad) {
          const error = yield* Effect.flip(Lock.withLock(Effect.void, make(lock.name, options)))
          assert.instanceOf(error, InvalidLockOptions, JSON.stringify(options))
          assert.instanceOf(yield* Effect.flip(Lock.withLock(Effect.void, lock, options)), InvalidLockOptions)
        }
        assert.isFalse(yield* Lock.isLocked(lock))
      })
    )

    it.effect("Another type under the lock's key fails with LockStoreError", () =>
      Effect.gen(function* () {
        const string = yield* freshLock
        yield* LockStore.LockStore.use((store) =>
          runOperation(
            store,
            "semaphore/set",
            [string.name, `{${string.name}}:ids`, string.name],
            [1, 0, store.publish]
          )
        )
        for (const use of [
          Lock.withLock(Effect.void, string),
          Lock.withLock(Effect.void, string, { waitTime: 0 }),
          Effect.scoped(Lock.tryScoped(string)),
          Lock.isLocked(string),
          Lock.forceRelease(string)
        ]) {
          const error = yield* Effect.flip(use as Effect.Effect<unknown, AcquireError, RedisLock.RedisLock>)
          assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
          assert.include(error.message, string.name)
          assert.include(error.message, "a Semaphore, a PermitSemaphore")
        }
      })
    )
  })
}
