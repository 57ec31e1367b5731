/**
 * The demo: what a lock is for, shown on a ledger that four workers write to.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { TestRedis } from "@effect-redis-lock/testing"
import { Cause, Console, Duration, Effect, Fiber, FileSystem, Layer, Option, Path, type Scope } from "effect"
import { withKill, withLock, withoutLock } from "./acts.ts"
import * as FiberWorkers from "./FiberWorkers.ts"
import { Ledger } from "./Ledger.ts"
import * as ProcessWorkers from "./ProcessWorkers.ts"
import * as Report from "./report/report.ts"
import { Workers } from "./Workers.ts"

/** Processes if there is a Redis for them, else fibers. */
const workers = Layer.unwrap(
  Effect.gen(function* (): Effect.fn.Return<WorkersLayer, TestRedis.NoRedisFound, Scope.Scope> {
    const stillLooking = yield* Console.log("Redis: still looking (Docker may have to pull an image first) ...").pipe(
      Effect.delay("2 seconds"),
      Effect.forkChild
    )
    const redis = yield* TestRedis.find
    yield* Fiber.interrupt(stillLooking)
    if (Option.isNone(redis)) {
      yield* Console.log("Redis: none found, so the demo uses the memory store, and fibers instead of processes")
      return FiberWorkers.layer
    }
    const keyPrefix = `effect-redis-lock:demo:${crypto.randomUUID()}:` // so that no other "ledger" is touched
    return ProcessWorkers.layer({ url: redis.value.url, keyPrefix })
  })
)

const howToSeeItOnRedis = `
To see it with processes on Redis, do one of these and run it again:
  - set REDIS_URL, e.g. to redis://127.0.0.1:6379
  - put redis-server or valkey-server on the PATH (apt-get install redis-server, brew install redis)
  - start Docker`

type WorkersLayer = Layer.Layer<Workers, never, NodeServices.NodeServices>

const demo = Effect.gen(function* () {
  const { kind } = yield* Workers
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "effect-redis-lock-demo-" })
  const newLedger = (name: string) => Ledger.layerNew(path.join(directory, name))

  const acts = Effect.gen(function* () {
    yield* withoutLock.pipe(Effect.provide(newLedger("without-lock.json")))
    yield* withLock.pipe(Effect.provide(newLedger("with-lock.json")))
    yield* withKill.pipe(Effect.provide(newLedger("with-kill.json")))
  })
  const [duration] = yield* Effect.timed(acts)

  yield* Console.log(Report.verdict(Duration.toMillis(duration)))
  if (kind === "fibers") yield* Console.log(howToSeeItOnRedis)
}).pipe(Effect.scoped, Effect.provide(workers))

const main = demo.pipe(
  Effect.onError((cause) =>
    Console.error(
      Cause.hasInterruptsOnly(cause) ? "\nStopped. No worker or server is left running." : Report.failure(cause)
    )
  ),
  Effect.provide(NodeServices.layer)
)

// A closed terminal, or a reader that stops reading our output (`demo | head`), has the same effect as Ctrl-C.
const stop = () => process.kill(process.pid, "SIGINT")
process.on("SIGHUP", stop)
process.stdout.on("error", stop)

NodeRuntime.runMain(main, { disableErrorReporting: true })
