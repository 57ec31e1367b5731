/**
 * A seller with an ioredis client of its own: `overIoredis.js ARTICLE SALES`.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, Layer, References } from "effect"
import { RedisLock } from "effect-redis-lock"
import { Redis } from "ioredis"
import { sell, url } from "./stock.ts"

const [article = "", sales = "0"] = process.argv.slice(2)

const client = new Redis(url)

const locks = Layer.provide(RedisLock.layer(), IoRedis.fromClient(client))

const program = sell(article, {
  read: Effect.promise(() => client.get(`left:${article}`)),
  write: (left) => Effect.promise(() => client.set(`left:${article}`, left))
}).pipe(Effect.repeat({ times: Number(sales) - 1 }))

await Effect.runPromise(
  program.pipe(
    // the layer of the locks closes first, then the client
    Effect.provide(locks),
    Effect.ensuring(Effect.promise(() => client.quit())),
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
