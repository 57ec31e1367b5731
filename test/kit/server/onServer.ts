/**
 * Tests on a server of their own.
 */
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { Effect, Exit } from "effect"
import type { Redis } from "ioredis"
import { eventually } from "../eventually.ts"
import { bare } from "./bareRedis.ts"
import { isLasting } from "./lastingKeys.ts"

/** What a test is given. */
export interface Site {
  readonly server: RedisServer.RedisServer
  /** Looks at the server directly, whatever lies between the tested clients and the server. */
  readonly redis: Redis
}

/**
 * A server for the rest of a test. When everything that the test has built after it is closed again, nothing may be left in Redis but the
 * last fencing tokens: no lock, no subscription, no connection.
 */
export const onServer = Effect.fnUntraced(function* (options?: RedisServer.Options) {
  const server = yield* RedisServer.start(options)
  const redis = yield* bare(server)
  // a test that has failed says why by itself
  yield* Effect.addFinalizer((exit) =>
    Exit.isSuccess(exit) ? Effect.interruptible(leavesNothing(redis)) : Effect.void
  )
  return { server, redis }
})

/** {@link onServer} with a proxy before the server. */
export const behindProxy = Effect.fnUntraced(function* (options?: RedisServer.Options) {
  const site = yield* onServer(options)
  return { ...site, proxy: yield* TcpProxy.make({ target: site.server }) }
})

const leavesNothing = Effect.fnUntraced(function* (redis: Redis) {
  yield* eventually(
    "no key of ours is left but what lasts",
    () => redis.keys("*"),
    (keys) => keys.every(isLasting)
  )
  yield* eventually(
    "nobody is subscribed any more",
    () => redis.pubsub("CHANNELS"),
    (channels) => (channels as ReadonlyArray<unknown>).length === 0
  )
  yield* eventually(
    "nobody else is connected any more",
    async () => (await redis.client("LIST")) as string,
    (clients) => clients.trim().split("\n").length === 1
  )
})
