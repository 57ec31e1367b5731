import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { CountDownLatch, InvalidLockOptions, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"

it.effect("a quorum of servers refuses semaphores and latches", () =>
  Effect.gen(function* () {
    for (const use of [
      Semaphore.acquire("a"),
      Semaphore.availablePermits("a"),
      Effect.scoped(PermitSemaphore.scoped("a")),
      PermitSemaphore.setPermits("a", 1),
      CountDownLatch.await("a"),
      CountDownLatch.count("a")
    ]) {
      const error = yield* Effect.flip(use as Effect.Effect<unknown, unknown, RedisLock.RedisLock>)
      assert.instanceOf(error, InvalidLockOptions)
      assert.include(error.message, "a quorum of servers cannot keep it")
    }
  }).pipe(Effect.provide(RedisLock.layerQuorum([RedisLock.layerMemory, RedisLock.layerMemory, RedisLock.layerMemory])))
)
