/**
 * A worker process: `node worker.js '{"worker":1,...}'`. It takes the address of Redis and the lock's settings from the
 * environment, waits for a line on its standard input, and reports in lines of JSON on its standard output.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Cause, Console, Effect, Latch, Layer, Schema, Stdio, Stream } from "effect"
import { RedisLock } from "effect-redis-lock"
import { Ledger } from "./Ledger.ts"
import { Job, WorkerEvent, WorkerFailed } from "./Workers.ts"
import { work } from "./work.ts"

const report = (event: WorkerEvent) =>
  Schema.encodeEffect(Schema.fromJsonString(WorkerEvent))(event).pipe(Effect.flatMap(Console.log), Effect.orDie)

// If the parent was killed, nobody reads our output; the end of our input then stops us cleanly.
process.stdout.on("error", () => {})

const main = Effect.gen(function* () {
  const { args, stdin } = yield* Stdio.Stdio
  const job = yield* Schema.decodeEffect(Schema.fromJsonString(Job))((yield* args)[0] ?? "")
  const go = yield* Latch.make()

  const doTheJob = report({ _tag: "Ready" }).pipe(
    Effect.andThen(go.await),
    Effect.andThen(work(job, report)),
    Effect.provide([
      Ledger.layer(job.ledger),
      RedisLock.layerConfig().pipe(Layer.provide(IoRedis.layerConfig())) // REDIS_URL, REDIS_LOCK_...
    ]),
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : report(WorkerFailed.of(job.worker, Cause.squash(cause)))
    )
  )
  // The first line means "go"; the end of input means that the parent is gone, however it died.
  const listen = Stream.runForEach(stdin, () => go.open).pipe(
    Effect.ensuring(Effect.sync(() => process.stdin.destroy())) // while it is open, Node does not exit
  )

  yield* Effect.raceFirst(doTheJob, listen)
})

main.pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain({ disableErrorReporting: true }))
