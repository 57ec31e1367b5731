/**
 * How long a request for several permits, or for one, can be overtaken, in virtual time.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer } from "effect"
import { LockStore, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"

const kinds = {
  Semaphore: (permits: number) => Semaphore.withPermits(Semaphore.make("pool", { permits: 2 }), permits),
  PermitSemaphore: (permits: number) =>
    PermitSemaphore.withPermits(PermitSemaphore.make("pool", { permits: 2 }), permits)
}

/** Clients of one store in memory. */
const twoClients = Effect.gen(function* () {
  const store = yield* Layer.build(LockStore.layerMemory)
  const client = Effect.map(
    Layer.build(Layer.fresh(RedisLock.layerFromStore({ fallbackInterval: "1 second" }))).pipe(
      Effect.provideContext(store)
    ),
    (context) => Context.get(context, RedisLock.RedisLock)
  )
  return [yield* client, yield* client] as const
})

for (const [kind, withPermits] of Object.entries(kinds)) {
  describe(`a ${kind} of two permits`, () => {
    for (const isOwn of [true, false]) {
      it.effect(
        `Somebody who wants both gets them though two fibers of ${isOwn ? "its own" : "another"} process go on taking one each`,
        () =>
          Effect.gen(function* () {
            const [mine, others] = yield* twoClients
            const section = Effect.sleep("3 seconds").pipe(withPermits(1))
            const loop = Effect.forever(section).pipe(Effect.provideService(RedisLock.RedisLock, isOwn ? mine : others))
            const fibers = [yield* Effect.forkChild(loop)]
            yield* TestClock.adjust("1500 millis")
            fibers.push(yield* Effect.forkChild(loop))
            yield* TestClock.adjust("100 millis")
            const both = yield* Effect.clockWith((clock) => clock.currentTimeMillis).pipe(
              withPermits(2),
              Effect.provideService(RedisLock.RedisLock, mine),
              Effect.forkChild
            )
            const startedAt = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
            for (let i = 0; i < 600 && both.pollUnsafe() === undefined; i++) yield* TestClock.adjust("100 millis")
            const waited = Duration.millis((yield* Fiber.join(both)) - startedAt)
            // five times the longest section
            assert.isAtMost(Duration.toSeconds(waited), 15)
            for (const fiber of fibers) yield* Fiber.interrupt(fiber)
          }).pipe(Effect.scoped)
      )
    }
  })
}
