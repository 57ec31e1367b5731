/**
 * Where the locks and the accounts are.
 */
import { PgClient } from "@effect/sql-pg"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Config } from "effect"

/** `REDIS_URL`. The lease is short, so that the example is: leave it out in a service. */
export const locks = IoRedis.layerRedisLock({
  urls: [process.env["REDIS_URL"] ?? "redis://localhost:6379"],
  watchdogLeaseTime: "2 seconds",
  commandTimeout: "500 millis"
})

/** `DATABASE_URL`. */
export const database = PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })
