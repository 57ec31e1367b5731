/**
 * Workers that are operating-system processes, each with its own connection to Redis.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { Ndjson } from "effect/encoding"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { fileURLToPath } from "node:url"
import { Job, WorkerEvent, WorkerFailed, Workers } from "./Workers.ts"

const program = fileURLToPath(new URL("worker.js", import.meta.url))

export const layer = (redis: {
  readonly url: string
  readonly keyPrefix: string
}): Layer.Layer<Workers, never, ChildProcessSpawner.ChildProcessSpawner> =>
  Layer.effect(
    Workers,
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner

      return Workers.of({
        kind: "processes",

        start: Effect.fnUntraced(function* (job, go) {
          const failed = (cause: unknown) => WorkerFailed.of(job.worker, cause)
          const argument = yield* Effect.orDie(Schema.encodeEffect(Schema.fromJsonString(Job))(job))

          const child = yield* spawner
            .spawn(
              ChildProcess.make(process.execPath, [program, argument], {
                env: {
                  REDIS_URL: redis.url,
                  REDIS_LOCK_KEY_PREFIX: redis.keyPrefix,
                  REDIS_LOCK_WATCHDOG_LEASE_TIME: `${job.leaseMillis} millis`
                },
                extendEnv: true,
                // never ends: its end would tell the worker that we are gone
                stdin: Stream.concat(Stream.fromEffect(Effect.as(go, new TextEncoder().encode("go\n"))), Stream.never),
                stderr: "inherit",
                forceKillAfter: "3 seconds"
              })
            )
            .pipe(Effect.mapError(failed))

          let killed = false
          const ended = Effect.matchEffect(child.exitCode, {
            onSuccess: (code) =>
              code === 0 ? Effect.void : Effect.fail(failed(`Its process ended with exit code ${code}.`)),
            onFailure: () => (killed ? Effect.void : Effect.fail(failed("Its process was ended by a signal.")))
          })

          return {
            events: child.stdout.pipe(
              Stream.pipeThroughChannel(Ndjson.decodeSchema(WorkerEvent)()),
              Stream.mapError(failed),
              Stream.concat(Stream.fromEffectDrain(ended))
            ),
            kill: Effect.suspend(() => {
              killed = true
              return Effect.orDie(child.kill({ killSignal: "SIGKILL" }))
            })
          }
        })
      })
    })
  )
