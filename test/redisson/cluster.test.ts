/**
 * What Redisson's own tests verify of its spin and read-write locks in a cluster, by the numbers of the project's list of
 * behaviours. Of 58, not its replicas: nothing here waits for replicas.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, ReadWriteLock, SpinLock } from "effect-redis-lock"
import { clusterClient, TheCluster } from "../kit/server/cluster.ts"
import { type AnyLock } from "./kit.ts"
import { freshName } from "../kit/names.ts"

it.layer(TheCluster.layer(), { excludeTestServices: true })("in a cluster", (it) => {
  it.effect("58. a spin lock: acquire, isLocked, release, isLocked", () =>
    Effect.gen(function* () {
      const { run } = yield* clusterClient(yield* TheCluster)
      const lock = SpinLock.make(freshName("redisson"))
      for (let i = 0; i < 3; i++) {
        assert.isTrue(yield* run(Lock.withLock(Lock.isLocked(lock), lock)))
        assert.isFalse(yield* run(Lock.isLocked(lock)))
      }
    })
  )

  it.effect("113. a read-write lock: write, read, end reading, end writing by one thread", () =>
    Effect.gen(function* () {
      const { run } = yield* clusterClient(yield* TheCluster)
      const { readLock, writeLock } = ReadWriteLock.make(freshName("redisson"))
      const locked = Effect.forEach([readLock, writeLock], (lock: AnyLock) => Lock.isLocked(lock))
      yield* run(
        Effect.scoped(
          Effect.gen(function* () {
            const writing = yield* Lock.scoped(writeLock)
            const reading = yield* Lock.scoped(readLock)
            assert.deepStrictEqual(yield* locked, [true, true])
            yield* reading.release
            assert.deepStrictEqual(yield* locked, [false, true])
            yield* writing.release
            assert.deepStrictEqual(yield* locked, [false, false])
          })
        )
      )
    })
  )
})
