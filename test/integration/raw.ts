/**
 * A second connection to the Redis of the tests, which looks at what is there and plays a Java client.
 */
import { Context, Effect, Layer } from "effect"
import type { Redis } from "ioredis"
import { until } from "../kit/eventually.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { bare } from "../kit/server/bareRedis.ts"

export class Raw extends Context.Service<Raw, Redis>()("test/Raw") {}

const connection = bare({ url: redisUrl })

export const command = <A>(f: (redis: Redis) => Promise<A>) => Raw.use((redis) => Effect.promise(() => f(redis)))

/** The messages of a channel from now on: those that came since the last time. */
export const messages = Effect.fnUntraced(function* (channel: string) {
  const listener = yield* connection
  let seen: Array<string> = []
  listener.on("message", (_channel, message: string) => seen.push(message))
  yield* Effect.promise(() => listener.subscribe(channel))
  return Effect.gen(function* () {
    const end = `end ${crypto.randomUUID()}`
    yield* command((redis) => redis.publish(channel, end))
    yield* until("all messages are heard", () => seen.at(-1) === end)
    const heard = seen.slice(0, -1)
    seen = []
    return heard
  })
})

export const raw = Layer.effect(Raw, connection)
