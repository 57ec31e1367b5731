/**
 * The Redis that decides which instance runs a tick.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer } from "effect"
import { RedisLock } from "effect-redis-lock"

export const redis = RedisLock.layer().pipe(
  Layer.provide(IoRedis.layer({ url: process.env["REDIS_URL"] ?? "redis://localhost:6379" }))
)

/** The name under which the instances share a schedule. */
export const scheduleName = process.env["SCHEDULE"] ?? "example-report"
