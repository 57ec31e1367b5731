/**
 * Tests on a server of their own.
 */
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import type { Redis } from "ioredis"
import { eventually } from "../eventually.ts"
import { isLasting } from "./lastingKeys.ts"
import { bare } from "./bareRedis.ts"

/** What a test is given. */
export interface Site {
  readonly server: RedisServer.RedisServer
  /** Looks at the server directly, whatever lies between the tested clients and the server. */
  readonly redis: Redis
}

/**
 * A test on a server of its own. When everything that it has built is closed again, nothing may be left in Redis but the
 * last fencing tokens: no lock, no subscription, no connection.
 */
export const onServer =
  <E>(body: (site: Site) => Effect.Effect<unknown, E, Scope.Scope>, options?: RedisServer.Options) =>
  () =>
    Effect.gen(function* () {
      const server = yield* RedisServer.start(options)
      const redis = yield* bare(server)
      yield* Effect.scoped(body({ server, redis }))
      yield* leavesNothing(redis)
    })

/** {@link onServer} with a proxy before the server. */
export const behindProxy = <E>(
  body: (site: Site & { readonly proxy: TcpProxy.TcpProxy }) => Effect.Effect<unknown, E, Scope.Scope>,
  options?: RedisServer.Options
) =>
  onServer<E | TcpProxy.TcpProxyError>(
    (site) => Effect.flatMap(TcpProxy.make({ target: site.server }), (proxy) => body({ ...site, proxy })),
    options
  )

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
