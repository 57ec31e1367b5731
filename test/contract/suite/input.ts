/**
 * Names under which there is something else.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type AcquireError, Lock, LockStore, type RedisLock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"
import { runOperation } from "../../kit/storeOperations.ts"

export const input = ({ freshLock, suite }: Contract): void => {
  suite("something else under the name", (test) => {
    test("Another type under the lock's key fails with LockStoreError", function* () {
      const string = yield* freshLock
      yield* LockStore.LockStore.use((store) =>
        runOperation(store, "lock/raise_token", [string.name, string.name], [1, 0])
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
  })
}
