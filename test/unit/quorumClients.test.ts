/**
 * The clients that quorums of a service's locks have in common.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, RedLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { clientOf, testStores } from "../kit/testStore.ts"

it.effect("The members of a quorum share one client, however many names their locks have had", () =>
  Effect.gen(function* () {
    const stores = yield* testStores(3)
    for (const options of [{}, { keyPrefix: "app:" }]) {
      const services = yield* Effect.forEach(stores, (store) => clientOf(store, options))
      for (let i = 0; i < 100; i++) {
        const red = RedLock.make(services.map((service) => Lock.provide(Lock.make(`order:${i}`), service)))
        yield* Effect.gen(function* () {
          assert.isTrue(yield* Lock.isLocked(Lock.provide(Lock.make(`order:${i}`), services[1]!)))
          assert.isFalse(yield* stores[2]!.isFree(`${options.keyPrefix ?? ""}order:${i}`))
        }).pipe(Lock.withLock(red))
      }
      const sizes = services.map((service) => (service as unknown as LockClient).quorumClients.all.length)
      assert.deepStrictEqual(sizes, [1, 0, 0])
    }
  })
)
