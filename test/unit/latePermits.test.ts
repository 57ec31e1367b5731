/**
 * Permits whose request is answered late, or never, are taken back; where that is no longer possible, it is logged.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type RedisLock, Semaphore } from "effect-redis-lock"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const semaphore = Semaphore.make("a", { permits: 1 })

const uses: Record<string, Effect.Effect<unknown, unknown, RedisLock.RedisLock>> = {
  acquire: Semaphore.acquire(semaphore),
  tryAcquire: Semaphore.tryAcquire(semaphore)
}

/** A client whose store grants permits at once and fails after `lateMillis`; no command takes effect after ten seconds. */
const lateClient = Effect.fnUntraced(function* (commandTimeoutMillis: number, lateMillis: number) {
  const server = yield* testStore()
  const store = wrappedStore(server.store, ({ fail, operation, run }) =>
    operation === "semaphore/acquire"
      ? Effect.andThen(run(), Effect.andThen(Effect.sleep(lateMillis), fail("Failed")))
      : run()
  )
  return yield* clientOf({ store: { ...store, commandLifeMillis: 10_000, commandTimeoutMillis } })
})

for (const [name, use] of Object.entries(uses)) {
  for (const sent of [1, 3]) {
    test(`Semaphore.${name} takes back what it was granted after ${sent === 1 ? "one command timeout" : "three command timeouts"} of 90 seconds`, function* () {
      const service = yield* lateClient(90_000, sent * 90_000)
      const asking = yield* background(as(service)(use))
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(Exit.isFailure(yield* Fiber.await(asking)))
      assert.strictEqual(yield* as(service)(Semaphore.availablePermits(semaphore)), 1)
    }, 10_000)
  }

  test(`Semaphore.${name} warns that permits may be lost if it learns of the failure when Redis may have forgotten the grant`, function* () {
    expectWarning(/^Permits that may have been acquired can no longer be given back/)
    // as after the process was frozen for so long
    const service = yield* lateClient(10_000, 5 * 60_000)
    const asking = yield* background(as(service)(use))
    yield* TestClock.adjust("10 minutes")
    assert.isTrue(Exit.isFailure(yield* Fiber.await(asking)))
    assert.strictEqual(yield* as(service)(Semaphore.availablePermits(semaphore)), 0)
  }, 10_000)
}
