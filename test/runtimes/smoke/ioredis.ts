/**
 * Locks over ioredis, as a user would have them.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import type { RedisLock } from "effect-redis-lock"

/** URLs of TLS and of a cluster work as well. */
export const hasTopologies = true

export const makeLive = (url: string, options: RedisLock.RedisLockOptions) =>
  IoRedis.layerRedisLock({ urls: [url], ...options })
