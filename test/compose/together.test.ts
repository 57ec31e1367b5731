/**
 * Several locks by one command, on memory and on Redis.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, LockStore, LockStoreError, MultiLock, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { onRedis } from "../kit/stores.ts"
import { runOperation, typeOfKey } from "../kit/storeOperations.ts"
import { testsOf } from "../kit/test.ts"

const names = Effect.sync(() => {
  const run = crypto.randomUUID().slice(0, 8)
  return [1, 2, 3].map((n) => `together:${run}:${n}`) as [string, string, string]
})

const suite = <E>(where: string, store: Layer.Layer<LockStore.LockStore, E>) =>
  it.layer(Layer.provideMerge(RedisLock.layerFromStore(), store), { excludeTestServices: true })(
    `several locks by one command on ${where}`,
    (it) => {
      const test = testsOf(it.effect)
      test("A command for several locks names the one that is no lock of this kind, and acquires none", function* () {
        const [a, b, c] = yield* names
        const { readLock } = ReadWriteLock.make(b)
        const all = MultiLock.make([a, b, c].map((name) => Lock.make(name)))
        yield* Effect.gen(function* () {
          const error = yield* Effect.flip(Lock.withLock(Effect.void, all))
          assert.instanceOf(error, LockStoreError)
          assert.strictEqual((error as LockStoreError).reason, "WrongType")
          assert.include(error.message, `"${b}"`)
          assert.include(error.message, "ReadWriteLock")
        }).pipe(Lock.withLock(readLock))
        for (const name of [a, b, c]) assert.isFalse(yield* Lock.isLocked(name))
      })

      test("A command for several locks acquires none if the last token of one of them is no token", function* () {
        const [a, b, c] = yield* names
        const store = yield* LockStore.LockStore
        // a hash under the token's key
        yield* runOperation(
          store,
          "lock/acquire",
          [`redisson_lock_token:{${c}}`, `other:{${c}}`],
          ["somebody", 1000, 1000]
        )
        const error = yield* Effect.flip(
          Lock.withLock(Effect.void, MultiLock.make([a, b, c].map((name) => Lock.make(name))))
        )
        assert.strictEqual(error._tag, "LockStoreError")
        for (const name of [a, b, c]) assert.strictEqual(yield* typeOfKey(name), "none")
      })
    }
  )

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)
