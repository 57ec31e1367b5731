/**
 * A process that calls the partner: `worker.js URL CALLS`. All processes together have five calls under way at most.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, References } from "effect"
import { PermitSemaphore } from "effect-redis-lock"

const [url = "", calls = "0"] = process.argv.slice(2)

const partner = PermitSemaphore.make("partner-api", { permits: 5 })

const call = Effect.tryPromise(async (signal) => {
  const response = await fetch(url, { signal })
  if (!response.ok) throw new Error(`the partner says ${response.status}`)
}).pipe(PermitSemaphore.withPermit(partner, { waitTime: "1 minute" }))

// all at once, as requests come: those without a permit wait
const program = Effect.all(
  Array.from({ length: Number(calls) }, () => call),
  { concurrency: "unbounded", discard: true }
)

await Effect.runPromise(
  program.pipe(
    Effect.provide(
      IoRedis.layerRedisLock({
        urls: [process.env["REDIS_URL"] ?? "redis://localhost:6379"],
        // short, so that the example is: leave it out in a service
        watchdogLeaseTime: "2 seconds",
        commandTimeout: "500 millis"
      })
    ),
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
