import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, Layer, ManagedRuntime } from "effect"
import { LockStore } from "effect-redis-lock"
import { afterAll } from "vitest"
import { TheCluster } from "../kit/server/cluster.ts"
import { contract } from "./suite.ts"
import { fair, reentrant, write } from "./suite/kinds.ts"

// one cluster for all suites, which build the store anew
const runtime = ManagedRuntime.make(TheCluster.layer())
afterAll(() => runtime.dispose())

const store = Layer.unwrap(
  Effect.map(
    Effect.promise(() => runtime.runPromise(TheCluster)),
    ({ urls }) => Layer.provide(LockStore.layerRedis, IoRedis.layerCluster({ nodes: urls }))
  )
)

// writers come with readers
for (const kind of [reentrant, fair, write]) {
  contract({ name: "a Redis Cluster over ioredis", store, time: "real" }, kind)
}
