/**
 * What Redisson's own tests verify of locks under load and of locks named after entries of a map, by the numbers of the
 * project's list of behaviours. Fewer names than there, where they are up to 50 000.
 */
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { freshName, onBothStores } from "./kit.ts"

onBothStores("RLock under load", (it) => {
  const load = (
    ask: (name: string, work: Effect.Effect<void>) => Effect.Effect<boolean, unknown, RedisLock.RedisLock>
  ) =>
    Effect.gen(function* () {
      const prefix = yield* freshName
      const client = (yield* RedisLock.RedisLock) as unknown as LockClient
      const inside = new Map<string, number>()
      const thread = Effect.forEach(Array.from({ length: 500 }), (_, i) => {
        const name = `${prefix}:${i % 250}`
        return ask(
          name,
          Effect.acquireUseRelease(
            Effect.sync(() => inside.set(name, (inside.get(name) ?? 0) + 1)),
            () =>
              Effect.andThen(
                Effect.yieldNow,
                Effect.sync(() => assert.strictEqual(inside.get(name), 1))
              ),
            () => Effect.sync(() => inside.set(name, inside.get(name)! - 1))
          )
        )
      })
      const done = yield* Effect.forEach(Array.from({ length: 20 }), () => thread, { concurrency: "unbounded" })
      assert.strictEqual(client.watchdog.size, 0)
      return done.flat()
    })

  it.effect("29. 20 threads over 250 names, each twice, all complete", () =>
    Effect.gen(function* () {
      const done = yield* load((name, work) => Effect.as(Lock.withLock(work, name), true))
      assert.strictEqual(done.filter(Boolean).length, 10_000)
    })
  )

  it.effect("30. the same with waits of 0 to 9 ms, which may end in vain", () =>
    Effect.gen(function* () {
      const done = yield* load((name, work) =>
        Lock.withLock(work, name, { waitTime: Math.floor(Math.random() * 10) }).pipe(
          Effect.as(true),
          Effect.catchTag("LockTimeout", () => Effect.succeed(false))
        )
      )
      assert.strictEqual(done.length, 10_000)
      assert.isTrue(done.includes(true))
    })
  )

  it.effect("31. a lock named after an entry of a map: free, held, free", () =>
    Effect.gen(function* () {
      const lock = Lock.make(`{${yield* freshName}}:entry 1:key`)
      assert.isFalse(yield* Lock.isLocked(lock))
      const state = yield* Lock.withLock(Lock.inspect(lock), lock)
      assert.strictEqual(Option.getOrThrow(state).holders.length, 1)
      assert.isFalse(yield* Lock.isLocked(lock))
    })
  )
})
