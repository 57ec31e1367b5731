/**
 * Drivers without a server.
 */
import { Effect, Layer, Stream } from "effect"
import { RedisDriver } from "effect-redis-lock"

/** A driver that answers as told, and is told of nothing. Default: each command fails. */
export const fakeDriver = (own: Partial<RedisDriver.RedisDriver["Service"]> = {}) =>
  Layer.succeed(RedisDriver.RedisDriver, {
    eval: () => Effect.fail(new RedisDriver.RedisDriverError({ reason: "NotConnected", cause: new Error("gone") })),
    subscribe: () => Stream.never,
    scan: () => Stream.empty,
    publish: "PUBLISH",
    slot: () => 0,
    server: () => "",
    commandTimeoutMillis: 3000,
    ...own
  })
