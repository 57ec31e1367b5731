/**
 * What Redisson's own tests verify by a look into its classes, by the numbers of the project's list of behaviours: here it is seen in
 * the same place, the watchdog, the subscriptions and the pauses of a client. The others are in test/redisson.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Schedule } from "effect"
import { Lock, ReadWriteLock, RedisLock, SpinLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import type { LockImpl } from "../../packages/core/dist/internal/locks/LockImpl.js"
import { backOff } from "../../packages/core/dist/internal/options/acquireOptions.js"
import { runOperation } from "../kit/storeOperations.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { otherClient, onBothStores, storeAt } from "../redisson/kit.ts"
import { soon } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { test } from "../kit/test.ts"

onBothStores("what the watchdog knows", (it) => {
  it.effect("19. while a lock is held the watchdog knows it, under any contention", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const client = (yield* RedisLock.RedisLock) as unknown as LockClient
      const worker = Effect.gen(function* () {
        for (let i = 0; i < 200; i++) {
          yield* Effect.sync(() => assert.isAtLeast(client.watchdog.leases.length, 1)).pipe(
            Lock.withLockIfAvailable(lock)
          )
        }
      })
      yield* Effect.forEach(Array.from({ length: 16 }), () => worker, { concurrency: "unbounded" })
      assert.strictEqual(client.watchdog.leases.length, 0)
    }).pipe(otherClient)
  )

  for (const [title, nested] of [
    ["41. a read hold that has ended is renewed no more", false],
    ["42. two nested read holds that have ended are renewed no more", true]
  ] as const) {
    it.effect(title, () =>
      Effect.gen(function* () {
        const lock = ReadWriteLock.make(freshName("redisson")).readLock
        const client = (yield* RedisLock.RedisLock) as unknown as LockClient
        const watched = Effect.sync(() => client.watchdog.leases.length)
        const inner = nested ? Lock.withLock(watched, lock) : watched
        assert.strictEqual(yield* Lock.withLock(inner, lock), 1)
        assert.strictEqual(client.watchdog.leases.length, 0)
      })
    )
  }
})

describe("a spin lock's pauses", () => {
  const pauses = (schedule: Schedule.Schedule<unknown>, count: number) =>
    Effect.flatMap(backOff(schedule), (next) => Effect.replicateEffect(next, count))

  test("64. without a schedule they double from 1 ms up to 128 ms, each varied by a fifth", function* () {
    const { kind } = SpinLock.make("a") as unknown as LockImpl<unknown>
    for (let i = 0; i < 20; i++) {
      const all = yield* pauses(kind.backoff!, 10)
      for (const [i, pause] of all.entries()) {
        const middle = Math.min(2 ** i, 128)
        assert.isTrue(pause! >= Math.max(1, middle * 0.8) && pause! <= middle * 1.2, `${all.join(", ")}`)
      }
    }
  })

  test("65. constant backoff is the same every time", function* () {
    assert.deepStrictEqual(yield* pauses(Schedule.spaced("64 millis"), 4), [64, 64, 64, 64])
    assert.deepStrictEqual(yield* pauses(Schedule.recurs(2), 3), [1, 1, undefined])
  })
})

describe("signals", () => {
  it.live("45. one message reaches everybody who listens: 10 of 10", () =>
    Effect.gen(function* () {
      const client = (yield* RedisLock.RedisLock) as unknown as LockClient
      const { store, subscriptions } = client
      const name = freshName("redisson")
      const channel = `redisson_lock__channel:{${name}}`
      const subscribed = Deferred.makeUnsafe<void>()
      const heard = Array.from({ length: 10 }, () => Deferred.makeUnsafe<void>())
      for (const told of heard) {
        subscriptions.subscribe(channel, ({ _tag }) => {
          Deferred.doneUnsafe(_tag === "Subscribed" ? subscribed : told, Effect.void)
        })
      }
      yield* Deferred.await(subscribed)
      const owner = `${crypto.randomUUID()}:1`
      yield* runOperation(client, "lock/acquire", [name, `redisson_lock_token:{${name}}`], [owner, 60_000, 1000])
      yield* runOperation(client, "lock/release", [name, channel], [owner, store.publish])
      for (const told of heard) yield* soon("it is told", Deferred.await(told))
    }).pipe(
      Effect.provide(Layer.provide(RedisLock.layerFromStore({ fallbackInterval: "5 minutes" }), storeAt(redisUrl)))
    )
  )
})
