/**
 * What is left of a lease, for people.
 */
import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Lock, PermitSemaphore, RedisLock } from "effect-redis-lock"

it.live("What is left of a lease is a whole number of milliseconds, and never more than is left", () =>
  Effect.gen(function* () {
    const holding = yield* Lock.scoped("a", { leaseTime: 60_000 })
    const permit = yield* PermitSemaphore.scoped(PermitSemaphore.make("b", { permits: 1 }), { leaseTime: 60_000 })
    for (const { remaining } of [holding, permit]) {
      const millis = Duration.toMillis(yield* remaining)
      assert.isTrue(Number.isInteger(millis))
      assert.isBelow(millis, 60_000)
    }
  }).pipe(Effect.scoped, Effect.provide(RedisLock.layerMemory))
)
