import { NodeRedis } from "@effect/platform-node"
import { Layer } from "effect"
import { LockStore, RedisDriver } from "effect-redis-lock"
import { redisUrl } from "../redis.ts"
import { contract } from "./suite.ts"

contract({
  name: "Redis over Effect's Redis service (node-redis)",
  store: LockStore.layerRedis.pipe(
    Layer.provide(RedisDriver.layerRedis),
    Layer.provide(NodeRedis.layer({ url: redisUrl, disableOfflineQueue: true }))
  ),
  time: "real"
})
