import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { hasFastPath } from "../kit/commandPath.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { contract } from "./suite.ts"
import { kinds } from "./suite/kinds.ts"

for (const fastPath of hasFastPath ? [true, false] : [false]) {
  const name = `Redis over ioredis, on the ${fastPath ? "fast" : "plain"} path`
  const store = Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: redisUrl, fastPath }))
  for (const kind of kinds) contract({ name, store, time: "real" }, kind)
}
