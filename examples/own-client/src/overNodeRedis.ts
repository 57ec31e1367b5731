/**
 * A seller whose client is Effect's `Redis` service, over node-redis: `overNodeRedis.js ARTICLE SALES`.
 */
import { NodeRedis } from "@effect/platform-node"
import { Effect, Layer, References } from "effect"
import { Redis } from "effect/persistence"
import { RedisDriver, RedisLock } from "effect-redis-lock"
import { sell, url } from "./stock.ts"

const [article = "", sales = "0"] = process.argv.slice(2)

const client = NodeRedis.layer({ url, disableOfflineQueue: true })

const locks = Layer.provide(RedisLock.layer(), RedisDriver.layerRedis)

const program = Effect.flatMap(Redis.Redis, (redis) =>
  sell(article, {
    read: redis.send<string | null>("GET", `left:${article}`),
    write: (left) => redis.send("SET", `left:${article}`, `${left}`)
  }).pipe(Effect.repeat({ times: Number(sales) - 1 }))
)

await Effect.runPromise(
  program.pipe(
    // one client for both
    Effect.provide(Layer.provideMerge(locks, client)),
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
