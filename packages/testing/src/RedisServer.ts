/**
 * A `redis-server` (or `valkey-server`) process for a test: on a free port of 127.0.0.1, empty, with nothing on disk. It ends
 * when the scope closes, and also when our process dies by Ctrl-C or SIGKILL. It can be killed, paused and restarted.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { basename, resolve } from "node:path"
import { findExecutable } from "./internal/executable.ts"
import { ping } from "./internal/ping.ts"
import { withRealClock } from "./internal/realClock.ts"
import { freePort, type ServerProcess, spawnServer } from "./internal/serverProcess.ts"

/** How to start a server. All fields are optional. */
export interface Options {
  /** The port on 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined
  /**
   * Additional arguments, after ours, so that they win: `["--maxmemory", "1mb"]`. If the first one is not an option, it
   * is a configuration file and goes first, as redis-server expects. Default: none.
   */
  readonly args?: ReadonlyArray<string> | undefined
  /**
   * The program: a name to look up on the PATH, or a path. It must be the server itself or a script that `exec`s it.
   * Default: `redis-server`, else `valkey-server`.
   */
  readonly binary?: string | undefined
}

/** A running server. */
export interface RedisServer {
  /** Always `127.0.0.1`. */
  readonly host: string
  /** The port; a restart keeps it. */
  readonly port: number
  /** `redis://127.0.0.1:<port>` */
  readonly url: string
  /** Name and version, e.g. `redis-server 7.0.15`. */
  readonly name: string
  /** The process id of the server itself; a restart changes it. */
  readonly pid: number
  /** Sends SIGKILL, and waits until the process is gone. Does nothing if it is gone already. */
  readonly kill: Effect.Effect<void>
  /** Sends SIGSTOP: connections stay open and nothing is answered. Fails with `NotRunning` after a kill. */
  readonly pause: Effect.Effect<void, RedisServerError>
  /** Sends SIGCONT, which ends a pause. Fails with `NotRunning` after a kill. */
  readonly resume: Effect.Effect<void, RedisServerError>
  /**
   * Starts an empty server on the same port, with the same arguments, and waits until it answers PING. A server that
   * still runs is killed first. Fails like {@link start}, and with `NotRunning` once the scope is closed.
   */
  readonly restart: Effect.Effect<void, RedisServerError>
}

/**
 * A server could not be started or signalled. `reason`:
 *
 * - `NotFound`: there is no such program
 * - `PortTaken`: another process listens on the port
 * - `Exited`: the server ended instead of answering; the message ends with its last lines of output
 * - `NoAnswer`: it runs, but did not answer PING in 30 seconds
 * - `NotRunning`: it was killed, or its scope is closed
 */
export class RedisServerError extends Schema.TaggedError<RedisServerError>(
  "@effect-redis-lock/testing/RedisServerError"
)("RedisServerError", {
  reason: Schema.Literals(["NotFound", "PortTaken", "Exited", "NoAnswer", "NotRunning"]),
  message: Schema.String
}) {}

const START_TIMEOUT_MILLIS = 30_000
const PING_TIMEOUT_MILLIS = 1000

const fail = (reason: RedisServerError["reason"], message: string) =>
  Effect.fail(new RedisServerError({ reason, message }))

const locate = Effect.fnUntraced(function* (binary: string | undefined) {
  const found = yield* findExecutable(binary === undefined ? ["redis-server", "valkey-server"] : [binary])
  if (Option.isSome(found)) return found.value
  return yield* fail(
    "NotFound",
    binary === undefined
      ? "Neither redis-server nor valkey-server is on the PATH. Install one of them, or name it with the option `binary`."
      : `${binary} is not an executable${binary.includes("/") ? "" : " on the PATH"}.`
  )
})

const arrange = (port: number, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const ours = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
  const [first, ...rest] = args
  // an absolute path, as the server has a working directory of its own
  return first !== undefined && !first.startsWith("-") ? [resolve(first), ...ours, ...rest] : [...ours, ...args]
}

const stop = (process: ServerProcess): Effect.Effect<string> =>
  Effect.suspend(() => {
    process.signal("SIGKILL")
    return process.exited
  })

/**
 * Starts a server and waits until it answers PING. It is stopped when the scope closes.
 *
 * Nothing is written to disk and nothing survives a restart. The server has a session of its own, so Ctrl-C does not
 * reach it: it still runs while finalizers run, and it ends with our process, however that ends.
 *
 * **Example**
 *
 * ```ts
 * import { RedisServer } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const server = yield* RedisServer.start({ args: ["--maxmemory", "1mb"] })
 *   console.log(server.name, server.url, server.pid)
 *   yield* server.pause // requests hang
 *   yield* server.resume
 *   yield* server.kill // connections break
 *   yield* server.restart // the same port, empty
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const start: (options?: Options) => Effect.Effect<RedisServer, RedisServerError, Scope.Scope> =
  Effect.fnUntraced(function* (options?: Options) {
    const binary = yield* locate(options?.binary)
    const args = options?.args ?? []
    const lock = Semaphore.makeUnsafe(1)
    let current: ServerProcess | undefined
    let version: string | undefined
    let closed = false

    // before the first launch, so that an interruption at any point finds it
    yield* Effect.addFinalizer(() =>
      lock.withPermit(
        Effect.suspend(() => {
          closed = true
          return current === undefined ? Effect.void : stop(current)
        })
      )
    )

    const becomesReady = (process: ServerProcess, port: number): Effect.Effect<void, RedisServerError> => {
      const answers = ping(`redis://127.0.0.1:${port}`, PING_TIMEOUT_MILLIS).pipe(
        Effect.retry({ schedule: Schedule.spaced(10), until: (error) => error.wantsCredentials }),
        // a server that demands a password is ready, but reveals nothing else
        Effect.catch(() => Effect.succeed({ name: "redis", version: undefined, processId: undefined })),
        Effect.flatMap((info) => {
          version = info.version
          return info.processId === undefined || info.processId === process.pid
            ? Effect.void
            : fail(
                "PortTaken",
                `Process ${info.processId}, not the ${basename(binary)} just started, answers on port ${port}.`
              )
        }),
        Effect.timeoutOrElse({
          duration: START_TIMEOUT_MILLIS,
          orElse: () => fail("NoAnswer", `${binary} on port ${port} did not answer PING in ${START_TIMEOUT_MILLIS} ms.`)
        })
      )
      const exits = Effect.flatMap(process.exited, (output) =>
        /address already in use/i.test(output)
          ? fail("PortTaken", `Port ${port} of 127.0.0.1 is taken.`)
          : fail(
              "Exited",
              `${binary} on port ${port} ended instead of answering. Its last output:\n${output || "(none)"}`
            )
      )
      return Effect.raceFirst(answers, exits).pipe(Effect.onError(() => stop(process)))
    }

    const launch = (port: number): Effect.Effect<void, RedisServerError> =>
      spawnServer(binary, arrange(port, args)).pipe(
        Effect.tap((process) => {
          current = process
          return Effect.void
        }),
        Effect.uninterruptible,
        Effect.catch((output) => fail("Exited", `${binary} could not be started: ${output}`)),
        Effect.flatMap((process) => becomesReady(process, port))
      )

    const portTaken = (error: RedisServerError) => error.reason === "PortTaken"

    const port =
      options?.port !== undefined
        ? yield* Effect.as(launch(options.port), options.port)
        : yield* freePort.pipe(
            Effect.orDie,
            Effect.tap(launch),
            // someone else may have taken the port in between
            Effect.retry({ while: portTaken, times: 9 })
          )

    const signal = (name: "SIGSTOP" | "SIGCONT") =>
      Effect.suspend(() =>
        current !== undefined && current.signal(name)
          ? Effect.void
          : fail("NotRunning", `The server on port ${port} is not running: restart it before you pause or resume it.`)
      )

    const server: RedisServer = {
      host: "127.0.0.1",
      port,
      url: `redis://127.0.0.1:${port}`,
      name: version === undefined ? basename(binary) : `${basename(binary)} ${version}`,
      get pid() {
        return current?.pid ?? 0
      },
      kill: lock.withPermit(Effect.suspend(() => (current === undefined ? Effect.void : Effect.asVoid(stop(current))))),
      pause: signal("SIGSTOP"),
      resume: signal("SIGCONT"),
      restart: lock
        .withPermit(
          Effect.suspend(() => {
            if (closed || current === undefined) {
              return fail("NotRunning", `The scope of the server on port ${port} is closed, so it cannot be restarted.`)
            }
            return Effect.andThen(
              stop(current),
              // for a moment the port may serve someone else's outgoing connection
              Effect.retry(launch(port), { while: portTaken, schedule: Schedule.spaced(100), times: 20 })
            )
          })
        )
        .pipe(withRealClock)
    }
    return server
  }, withRealClock)
