/**
 * The RedisLock service: what is not made by a layer of this library cannot pass for one.
 */
import { assert } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { CountDownLatch, Lock, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { testInMemory } from "../kit/test.ts"

const uses: Record<string, Effect.Effect<unknown, unknown, RedisLock.RedisLock>> = {
  "Lock.withLock": Lock.withLock(Effect.void, "a"),
  "Semaphore.availablePermits": Semaphore.availablePermits("a"),
  "PermitSemaphore.withPermit": PermitSemaphore.withPermit(Effect.void, "a"),
  "CountDownLatch.count": CountDownLatch.count("a")
}

for (const [name, use] of Object.entries(uses)) {
  testInMemory(
    `${name} with a service that was made by hand, past the compiler, dies with what is wrong`,
    function* () {
      for (const made of [{ clientId: "a" }, { clientId: "a", "~effect-redis-lock/RedisLock": {} }]) {
        const service = made as unknown as RedisLock.RedisLock["Service"]
        const exit = yield* Effect.exit(Effect.provideService(use, RedisLock.RedisLock, service))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.include(
          String(Exit.isFailure(exit) && Cause.squash(exit.cause)),
          "only the layers of RedisLock make one"
        )
      }
    }
  )
}

testInMemory("One lock is a lock of its own under the key prefix of each service with which it is used", function* () {
  const store = yield* testStore()
  const lock = Lock.make("a")
  const prefixes = ["app:", "", "other:"]
  const taken = Effect.map(
    Effect.forEach(prefixes, (prefix) => store.isFree(`${prefix}a`)),
    (free) => prefixes.filter((_, i) => free[i] === false)
  )
  for (const keyPrefix of prefixes) {
    const run = as(yield* clientOf(store, { keyPrefix }))
    assert.deepStrictEqual(yield* run(Lock.withLock(taken, lock)), [keyPrefix])
  }
})

testInMemory("a copy of a service is the service", function* () {
  const service = yield* RedisLock.RedisLock
  const copy: RedisLock.RedisLock["Service"] = { ...service }
  const holder = Lock.scoped(Lock.provide(Lock.make("a"), copy))
  yield* Effect.scoped(
    Effect.gen(function* () {
      assert.isTrue((yield* holder).owner.startsWith(service.clientId))
      assert.isTrue(yield* Lock.isLocked("a"))
    })
  )
})
