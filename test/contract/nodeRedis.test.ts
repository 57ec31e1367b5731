import { NodeRedis } from "@effect/platform-node"
import { Layer } from "effect"
import { LockStore, RedisDriver } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { contract } from "./suite.ts"
import { fair, reentrant } from "./suite/kinds.ts"

const store = LockStore.layerRedis.pipe(
  Layer.provide(RedisDriver.layerRedis),
  Layer.provide(NodeRedis.layer({ url: redisUrl, disableOfflineQueue: true }))
)

for (const kind of [reentrant, fair]) {
  contract({ name: "Redis over Effect's Redis service (node-redis)", store, time: "real" }, kind)
}
