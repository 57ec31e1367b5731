/**
 * An instance that starts the nightly job: `instance.ts NAME NIGHT`. It is run by the first instance whose timer fires.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, Option, References } from "effect"
import { Lock } from "effect-redis-lock"

const [name = "", night = ""] = process.argv.slice(2)

const job = Effect.sync(() => console.log(`${name} runs the job of ${night}`))

const program = job.pipe(
  // longer than the timers are apart
  Lock.withLockIfAvailable(`nightly-job:${night}`, { minHold: "30 seconds" }),
  Effect.tap((ran) => Effect.sync(() => Option.isNone(ran) && console.log(`${name} leaves it to another`)))
)

await Effect.runPromise(
  program.pipe(
    Effect.provide(IoRedis.layerRedisLock({ urls: [process.env["REDIS_URL"] ?? "redis://localhost:6379"] })),
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
