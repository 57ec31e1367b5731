/**
 * The two stores that must do alike.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { redisUrl } from "./server/redisUrl.ts"

/** The Redis of the tests. */
export const onRedis: Layer.Layer<LockStore.LockStore, unknown> = Layer.provide(
  LockStore.layerRedis,
  IoRedis.layer({ url: redisUrl })
)

export const stores: Record<"memory" | "Redis", Layer.Layer<LockStore.LockStore, unknown>> = {
  memory: LockStore.layerMemory,
  Redis: onRedis
}
