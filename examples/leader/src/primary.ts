/**
 * What instances and clients share: the election, and the Redis that decides it.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Layer, Schema } from "effect"
import { LeaderElection, RedisLock } from "effect-redis-lock"

/** The leader proclaims where it serves. */
export const primary = LeaderElection.make(process.env["ELECTION"] ?? "example-primary", { value: Schema.String })

export const redis = RedisLock.layer({
  // How long nobody leads after a leader has died. Short, as somebody is watching; the default is 30 seconds.
  watchdogLeaseTime: "2 seconds"
}).pipe(Layer.provide(IoRedis.layer({ url: process.env["REDIS_URL"] ?? "redis://localhost:6379" })))
