/**
 * What every store must do, done by a quorum of three: programs see no difference.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { Context, Effect, Layer } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { contract } from "../contract/suite.ts"
import { read, reentrant, write } from "../contract/suite/kinds.ts"

/** Three stores, which all clients of a suite share. */
class Stores extends Context.Service<Stores, ReadonlyArray<LockStore.LockStore["Service"]>>()("test/Stores") {}

const clients = (options: RedisLock.RedisLockOptions) =>
  Layer.unwrap(
    Effect.map(Stores, (stores) =>
      RedisLock.layerQuorum(
        stores.map((store) =>
          RedisLock.layerFromStore(options).pipe(Layer.provide(Layer.succeed(LockStore.LockStore, store)))
        ),
        // a machine however busy
        { memberTimeout: "5 seconds" }
      )
    )
  )

const three = <E>(store: Layer.Layer<LockStore.LockStore, E>) =>
  Layer.effect(
    Stores,
    Effect.forEach([1, 2, 3], () =>
      Effect.map(Layer.build(Layer.fresh(store)), (context) => Context.get(context, LockStore.LockStore))
    )
  )

const memory = { name: "a quorum of three in memory", store: three(LockStore.layerMemory), time: "virtual" } as const

const redis = {
  name: "a quorum of three Redis servers",
  store: three(
    LockStore.layerRedis.pipe(
      Layer.provide(
        Layer.unwrap(Effect.map(RedisServer.start(), ({ url }) => IoRedis.layer({ url, commandTimeout: "10 seconds" })))
      )
    )
  ),
  time: "real"
} as const

/** A quorum's store, for clients that are made as always. */
const storeOf = <E>(stores: Layer.Layer<Stores, E>) =>
  Layer.effect(
    LockStore.LockStore,
    Effect.map(RedisLock.RedisLock, (service) => {
      const { run, store } = service as unknown as LockClient
      return { ...store, run }
    })
  ).pipe(Layer.provide(clients({})), Layer.provide(stores))

for (const backend of [memory, redis]) {
  for (const kind of [reentrant, write, read]) {
    contract({ ...backend, store: storeOf(backend.store), isQuorum: true }, kind)
  }
}
