/**
 * A worker that prints labels, one by one: `worker.js NAME PRINTER LABELS`. java/ has the same in Java.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, References } from "effect"
import { CountDownLatch, FairLock, Lock } from "effect-redis-lock"

const [name = "", printer = "", labels = "0"] = process.argv.slice(2)

// what Java calls getFairLock("label-printer") and getCountDownLatch("label-printer:workers")
const turn = FairLock.make("label-printer", { waitTime: "1 minute" })
const everybodyIsHere = CountDownLatch.make("label-printer:workers")

const print = (label: number) =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(printer, { method: "POST", body: `${name} ${label}`, signal })
    if (!response.ok) throw new Error(`the printer says ${response.status}`)
  })

const program = Effect.gen(function* () {
  yield* CountDownLatch.countDown(everybodyIsHere)
  yield* CountDownLatch.await(everybodyIsHere)
  for (let label = 1; label <= Number(labels); label++) yield* print(label).pipe(Lock.withLock(turn))
})

await Effect.runPromise(
  program.pipe(
    Effect.provide(IoRedis.layerRedisLock({ urls: [process.env["REDIS_URL"] ?? "redis://localhost:6379"] })),
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
