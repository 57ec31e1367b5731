/**
 * Shared by the behaviours of both kinds of semaphore.
 */
import { assert, it, type Vitest } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { observedStore, type ObservedStore, waiterSleepsOn } from "../kit/observedStore.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { storeAt } from "./kit.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"

// messages, and the ends of leases, must do: nobody here waits for the fallback interval
const clients = closingSubscriptions(100)(RedisLock.layerFromStore({ fallbackInterval: "5 minutes" }))

/** Runs an effect in a client of its own. */
export const otherClient = asAnotherClient(clients)

/** Waits until fibers of this client wait for a semaphore, and hear its channel. */
export const waiting = (semaphore: string) => waiterSleepsOn(`redisson_sc:{${semaphore}}`)

/** Runs the tests on memory, in real time, and on Redis. */
export const onBothStores = (
  title: string,
  tests: (it: Vitest.MethodsNonLive<RedisLock.RedisLock | LockStore.LockStore | ObservedStore>) => void
) => {
  const run = <E>(name: string, store: Layer.Layer<LockStore.LockStore, E>) =>
    it.layer(Layer.provideMerge(clients, observedStore(store)), { excludeTestServices: true })(
      `${title} on ${name}`,
      tests
    )
  run("memory", LockStore.layerMemory)
  run("Redis", storeAt(redisUrl))
}

/** With one permit, tasks of this client, and then 16 clients of ten sections each, exclude each other. */
export const excludeEachOther = <E>(
  tasks: number,
  withPermit: (body: Effect.Effect<void>) => Effect.Effect<void, E, RedisLock.RedisLock>
) =>
  Effect.gen(function* () {
    let inside = 0
    let count = 0
    const section = withPermit(
      Effect.gen(function* () {
        assert.strictEqual(++inside, 1)
        const seen = count
        yield* Effect.yieldNow
        count = seen + 1
        inside--
      })
    )
    yield* Effect.forEach(Array.from({ length: tasks }), () => section, { concurrency: "unbounded" })
    assert.strictEqual(count, tasks)
    yield* Effect.forEach(Array.from({ length: 16 }), () => otherClient(Effect.repeat(section, { times: 9 })), {
      concurrency: "unbounded"
    })
    assert.strictEqual(count, tasks + 160)
  })
