/**
 * Shared by the behaviours of both kinds of semaphore and of the latch.
 */
import { it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { onlyMessages } from "../kit/onlyMessages.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { observedStore, type ObservedStore, waiterSleepsOn } from "../kit/observedStore.ts"
import { freshName } from "../kit/names.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { storeAt } from "./kit.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"

// messages, and the ends of leases, must do: nobody here waits for the fallback interval
const options = { fallbackInterval: "5 minutes" } as const
const clients = RedisLock.layerFromStore(options).pipe(closingSubscriptions(100), onlyMessages(options))

/** Runs an effect in a client of its own. */
export const otherClient = asAnotherClient(clients)

/** Waits until fibers of this client wait for a semaphore, and hear its channel. */
export const waiting = (semaphore: string) => waiterSleepsOn(`redisson_sc:{${semaphore}}`)

type Steps = (
  name: string
) => Generator<
  Effect.Effect<unknown, unknown, RedisLock.RedisLock | LockStore.LockStore | ObservedStore | Scope.Scope>,
  unknown,
  never
>

/** Runs the tests, each with a name of its own, on memory, in real time, and on Redis. */
export const onBothStores = (title: string, tests: (test: (title: string, steps: Steps) => void) => void) => {
  const run = <E>(name: string, store: Layer.Layer<LockStore.LockStore, E>) =>
    it.layer(Layer.provideMerge(clients, observedStore(store)), { excludeTestServices: true })(
      `${title} on ${name}`,
      (it) => tests((title, steps) => it.effect(title, () => Effect.gen(() => steps(freshName("redisson")))))
    )
  run("memory", LockStore.layerMemory)
  run("Redis", storeAt(redisUrl))
}
