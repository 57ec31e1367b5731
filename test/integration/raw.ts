/**
 * A second connection to the Redis of the tests, which looks at what is there and plays a Java client.
 */
import { Context, Effect, Layer } from "effect"
import type { Redis } from "ioredis"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { bare } from "../kit/server/bareRedis.ts"

export class Raw extends Context.Service<Raw, Redis>()("test/Raw") {}

const connection = bare({ url: redisUrl })

export const command = <A>(f: (redis: Redis) => Promise<A>) => Raw.use((redis) => Effect.promise(() => f(redis)))

/** The messages of a channel from now on. */
export const messages = Effect.fnUntraced(function* (channel: string) {
  const redis = yield* connection
  const seen: Array<string> = []
  redis.on("message", (_channel, message: string) => seen.push(message))
  yield* Effect.promise(() => redis.subscribe(channel))
  return seen
})

export const raw = Layer.effect(Raw, connection)
