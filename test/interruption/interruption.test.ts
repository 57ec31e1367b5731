/**
 * Whatever operation an interruption hits, nothing stays behind: no lock, no waiter, no channel, and the lock can be had at
 * once.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result } from "effect"
import { Lock, LockStore, RedisLock } from "effect-redis-lock"
import { Redis } from "ioredis"
import type { LockClient } from "../../packages/core/dist/internal/LockClient.js"
import { redisUrl } from "../redis.ts"
import { sweep } from "./sweep.ts"

const clients = RedisLock.layerStore({ subscriptionIdleTime: 1, fallbackInterval: 200 })
const elsewhere = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.provide(self, Layer.fresh(clients))

/** Nobody of this client waits, holds or is watched. */
const assertIdle = (index: number) =>
  Effect.map(RedisLock.RedisLock, (service) => {
    const client = service as unknown as LockClient
    assert.strictEqual(client.lines.size, 0, `a waiter is left after ${index}`)
    assert.strictEqual(client.watchdog.size, 0, `a holding is left after ${index}`)
  })

const assertFree = (lock: string, index: number) =>
  Effect.gen(function* () {
    yield* assertIdle(index)
    assert.isFalse(yield* Lock.isLocked(lock), `the lock is left after ${index}`)
    const again = yield* Effect.result(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
    assert.isTrue(Result.isSuccess(again), `the lock cannot be had after ${index}`)
  })

const suite = <E>(name: string, store: Layer.Layer<LockStore.LockStore, E>) =>
  describe(`interruption on ${name}`, () => {
    it.layer(Layer.provideMerge(clients, store), { excludeTestServices: true })("at every operation", (it) => {
      const scenarios: Record<string, (lock: string) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>> = {
        "of withLock": (lock) => Lock.withLock(Effect.yieldNow, lock),
        "of withLock with a fixed lease and a wait time": (lock) =>
          Lock.withLock(Effect.yieldNow, lock, { leaseTime: "1 minute", waitTime: "1 minute" }),
        "of withLockIfAvailable": (lock) => Lock.withLockIfAvailable(Effect.yieldNow, lock),
        "of scoped, an early release and the scope's end": (lock) =>
          Effect.scoped(
            Effect.flatMap(Lock.scoped(lock), (holding) => Effect.andThen(Effect.yieldNow, holding.release))
          ),
        "of tryScoped": (lock) => Effect.scoped(Effect.andThen(Lock.tryScoped(lock), Effect.yieldNow)),
        "of re-entry": (lock) => Effect.yieldNow.pipe(Lock.withLock(lock), Lock.withLock(lock)),
        "of a section that fails": (lock) => Lock.withLock(Effect.fail("no"), lock),
        "under a timeout": (lock) => Effect.timeout(Lock.withLock(Effect.yieldNow, lock), "1 minute")
      }
      for (const [title, program] of Object.entries(scenarios)) {
        it.effect(title, () =>
          Effect.gen(function* () {
            const lock = `sweep:${crypto.randomUUID()}`
            const interruptions = yield* sweep({
              program: program(lock),
              check: (index) => assertFree(lock, index)
            })
            assert.isAbove(interruptions, 10)
          })
        )
      }

      it.effect("of waiting, while the holder lets go", () =>
        Effect.gen(function* () {
          const lock = `sweep:${crypto.randomUUID()}`
          const letGo = yield* Deferred.make<void>()
          const hold = Effect.gen(function* () {
            const held = yield* Deferred.make<void>()
            const letGo = yield* Deferred.make<void>()
            const fiber = yield* Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(letGo)).pipe(
              Lock.withLock(lock),
              elsewhere,
              Effect.forkChild
            )
            yield* Deferred.await(held)
            return { letGo: Deferred.succeed(letGo, undefined), fiber }
          })
          let holder = yield* hold
          let index = 0
          const interruptions = yield* sweep({
            // the holder lets go somewhere in the middle of the wait, elsewhere each time
            program: Effect.all(
              [
                Lock.withLock(Effect.yieldNow, lock),
                Effect.suspend(() => Effect.andThen(repeatYield(index % 40), holder.letGo))
              ],
              { concurrency: "unbounded" }
            ),
            check: (at) =>
              Effect.gen(function* () {
                index = at
                yield* holder.letGo
                yield* Fiber.join(holder.fiber)
                yield* assertFree(lock, at)
                holder = yield* hold
              })
          })
          assert.isAbove(interruptions, 50)
          yield* Deferred.succeed(letGo, undefined)
          yield* holder.letGo
          yield* Fiber.join(holder.fiber)
        })
      )

      it.effect("of waiting behind another waiter of the same client", () =>
        Effect.gen(function* () {
          const lock = `sweep:${crypto.randomUUID()}`
          const interruptions = yield* sweep({
            program: Effect.all(
              [1, 2, 3].map(() => Lock.withLock(Effect.yieldNow, lock, { waitTime: "1 minute" })),
              {
                concurrency: "unbounded"
              }
            ),
            check: (index) => assertFree(lock, index)
          })
          assert.isAbove(interruptions, 100)
        })
      )
    })
  })

const repeatYield = (times: number): Effect.Effect<void> =>
  times === 0
    ? Effect.void
    : Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() => repeatYield(times - 1))
      )

suite("memory", LockStore.layerMemory)
suite("Redis", Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: redisUrl })))

it.live("leaves no channel and no key but the token's on the server", () =>
  Effect.gen(function* () {
    const observer = yield* Effect.acquireRelease(
      Effect.sync(() => new Redis(redisUrl)),
      (redis) => Effect.sync(() => redis.disconnect())
    )
    const channels = () => observer.pubsub("CHANNELS", "redisson_lock__channel:{sweep:*") as Promise<Array<string>>
    while ((yield* Effect.promise(channels)).length > 0) yield* Effect.sleep("50 millis")
    assert.deepStrictEqual(yield* Effect.promise(() => observer.keys("sweep:*")), [])
  })
)
