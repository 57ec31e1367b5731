import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster } from "@effect-redis-lock/testing"
import { Effect, Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { contract } from "./suite.ts"

contract({
  name: "a Redis Cluster over ioredis",
  store: Layer.unwrap(
    Effect.map(RedisCluster.start(), ({ urls }) =>
      Layer.provide(LockStore.layerRedis, IoRedis.layerCluster({ nodes: urls }))
    )
  ),
  time: "real"
})
