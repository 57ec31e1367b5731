import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { redisUrl } from "../redis.ts"
import { contract } from "./suite.ts"
import { kinds } from "./suite/kinds.ts"

const store = Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: redisUrl }))

for (const kind of kinds) contract({ name: "Redis over ioredis", store, time: "real" }, kind)
