import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { redisUrl } from "../redis.ts"
import { contract } from "./suite.ts"

contract({
  name: "Redis over ioredis",
  store: Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: redisUrl })),
  time: "real"
})
