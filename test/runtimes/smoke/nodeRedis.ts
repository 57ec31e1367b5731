/**
 * Locks over Effect's `Redis` service and node-redis, as a user would have them.
 */
import { NodeRedis } from "@effect/platform-node"
import { Layer } from "effect"
import { RedisDriver, RedisLock } from "effect-redis-lock"

/** One server only. */
export const hasTopologies = false

export const makeLive = (url: string, options: RedisLock.RedisLockOptions) =>
  RedisLock.layer(options).pipe(
    Layer.provide(RedisDriver.layerRedis),
    Layer.provide(NodeRedis.layer({ url, disableOfflineQueue: true }))
  )
