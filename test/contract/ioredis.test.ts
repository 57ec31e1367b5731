import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { hasFastPath } from "../kit/commandPath.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { contract } from "./suite.ts"
import { fair, kinds, reentrant, write } from "./suite/kinds.ts"

for (const fastPath of hasFastPath ? [true, false] : [false]) {
  const name = `Redis over ioredis, on the ${fastPath ? "fast" : "plain"} path`
  const store = Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: redisUrl, fastPath }))
  // a path sends what a kind asks, whichever kind it is: on the plain one those whose scripts differ, and writers come with readers
  for (const kind of fastPath ? kinds : [reentrant, fair, write]) {
    contract({ name, store, time: "real" }, kind)
  }
}
