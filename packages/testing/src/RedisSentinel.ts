/**
 * A master with replicas, watched by Redis Sentinels, all as processes on free ports of 127.0.0.1 that can be killed, paused
 * and restarted.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { command, failingAs, StepFailed } from "./internal/command.ts"
import { temporaryDirectory } from "./internal/directory.ts"
import { eventually, inSync } from "./internal/eventually.ts"
import * as RedisServer from "./RedisServer.ts"

/** How to start. All fields are optional. */
export interface Options {
  /** How many sentinels there are; a majority of them must agree on a failover. Default: 1. */
  readonly sentinels?: number | undefined
  /** How many replicas the master has. Default: 1. */
  readonly replicas?: number | undefined
  /** The name under which the sentinels know the master. Default: `mymaster`. */
  readonly name?: string | undefined
  /** How long the master may be silent before it counts as down. Default: 1 second. */
  readonly downAfter?: Duration.Input | undefined
  /** Additional arguments of master and replicas. Default: none. */
  readonly args?: ReadonlyArray<string> | undefined
  /** The program, as in {@link RedisServer.Options}. Default: `redis-server`, else `valkey-server`. */
  readonly binary?: string | undefined
}

/** Running servers and their sentinels. */
export interface RedisSentinel {
  /** The name of the master among the sentinels. */
  readonly name: string
  /** The initial master first, then its replicas. */
  readonly servers: ReadonlyArray<RedisServer.RedisServer>
  /** The sentinels. */
  readonly sentinels: ReadonlyArray<RedisServer.RedisServer>
  /**
   * The server that the sentinels name as the master now. Where they disagree, the one with the newest configuration that
   * says of itself that it is a master.
   */
  readonly master: Effect.Effect<RedisServer.RedisServer, RedisSentinelError>
  /**
   * Makes a replica the master, and waits until it is. Both servers keep running; to force a failover, kill or pause the
   * master instead.
   */
  readonly failover: Effect.Effect<void, RedisSentinelError>
}

/** The sentinels did not reach the expected state, or refused a command; the message names the step. */
export class RedisSentinelError extends Schema.TaggedError<RedisSentinelError>(
  "@effect-redis-lock/testing/RedisSentinelError"
)("RedisSentinelError", { message: Schema.String }) {}

const surfacing = failingAs((message) => new RedisSentinelError({ message }))

/**
 * Starts a master, its replicas and the sentinels, and waits until the sentinels know all of them. Everything is stopped when the
 * scope closes.
 *
 * Fails like {@link RedisServer.start}, and with `RedisSentinelError` if the processes do not find each other.
 *
 * **Example**
 *
 * ```ts
 * import { RedisSentinel } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const redis = yield* RedisSentinel.start({ sentinels: 3 })
 *   const before = yield* redis.master
 *   yield* redis.failover
 *   const after = yield* redis.master
 *   console.log(before.url, after.url)
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const start: (
  options?: Options
) => Effect.Effect<RedisSentinel, RedisServer.RedisServerError | RedisSentinelError, Scope.Scope> = Effect.fnUntraced(
  function* (options?: Options) {
    const name = options?.name ?? "mymaster"
    const count = options?.sentinels ?? 1
    const replicaCount = options?.replicas ?? 1
    const downAfter = Math.ceil(Duration.toMillis(Duration.fromInputUnsafe(options?.downAfter ?? "1 second")))
    const args = ["--repl-diskless-sync-delay", "0", ...(options?.args ?? [])]
    // sentinels write their configuration, and read it again after a restart
    const directory = yield* temporaryDirectory("redis-sentinel")

    const first = yield* RedisServer.start({ binary: options?.binary, args })
    const replicas = yield* Effect.forEach(Array.from({ length: replicaCount }), () =>
      RedisServer.start({ binary: options?.binary, args: ["--replicaof", first.host, String(first.port), ...args] })
    )
    const servers = [first, ...replicas]
    yield* inSync(replicas)

    const quorum = Math.floor(count / 2) + 1
    const sentinels = yield* Effect.forEach(
      Array.from({ length: count }, (_, index) => index),
      Effect.fnUntraced(function* (index) {
        const file = join(directory, `${index}.conf`)
        const configuration = [
          `sentinel monitor ${name} ${first.host} ${first.port} ${quorum}`,
          `sentinel down-after-milliseconds ${name} ${downAfter}`,
          // if the sentinels' votes are split, they vote again after twice this time
          `sentinel failover-timeout ${name} 3000`,
          ""
        ].join("\n")
        yield* Effect.promise(() => writeFile(file, configuration))
        const sentinel = yield* RedisServer.start({ binary: options?.binary, args: [file, "--sentinel"] })
        // ten and two seconds otherwise; sentinels too old to know this are just slower
        yield* Effect.ignore(
          command(sentinel, "SENTINEL", "DEBUG", "INFO-PERIOD", 500, "PUBLISH-PERIOD", 200, "PING-PERIOD", 200)
        )
        return sentinel
      })
    )

    const fields = (sentinel: RedisServer.RedisServer) =>
      Effect.map(command(sentinel, "SENTINEL", "MASTER", name), (reply) => {
        const list = reply as ReadonlyArray<string>
        return (field: string) => list[list.indexOf(field) + 1]
      })

    yield* Effect.forEach(sentinels, (sentinel) =>
      eventually(
        "every sentinel knows the replicas and the other sentinels",
        Effect.map(
          fields(sentinel),
          (field) =>
            field("flags") === "master" &&
            field("num-slaves") === String(replicaCount) &&
            field("num-other-sentinels") === String(count - 1)
        )
      )
    )

    /** Whom a sentinel names, and how new what it knows is. One that leads a failover is ahead of the configuration. */
    const answerOf = Effect.fnUntraced(function* (sentinel: RedisServer.RedisServer) {
      const address = yield* command(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
      const field = yield* fields(sentinel)
      const leads = field("flags")?.includes("failover_in_progress") === true
      return {
        port: Number((address as ReadonlyArray<string>)[1]),
        epoch: Number(field("config-epoch")) + (leads ? 0.5 : 0)
      }
    })

    const isMaster = (server: RedisServer.RedisServer) =>
      Effect.map(command(server, "ROLE"), (role) => (role as ReadonlyArray<unknown>)[0] === "master")

    const saysMaster = (server: RedisServer.RedisServer) =>
      isMaster(server).pipe(
        Effect.timeoutOrElse({ duration: "500 millis", orElse: () => Effect.succeed(false) }),
        Effect.orElseSucceed(() => false)
      )

    const master = Effect.gen(function* () {
      // they learn of a failover one after the other, and some may be down
      const [answers, failures] = yield* Effect.partition(sentinels, answerOf, { concurrency: "unbounded" })
      const ports = [...new Set(answers.toSorted((one, other) => other.epoch - one.epoch).map((answer) => answer.port))]
      if (ports.length === 0) return yield* Effect.fail(failures[0]!)
      const named = ports.flatMap((port) => servers.find((server) => server.port === port) ?? [])
      if (named.length < ports.length) {
        return yield* new StepFailed({ message: `The sentinels name an unknown master on port ${ports}.` })
      }
      if (named.length === 1) return named[0]!
      // the newest configuration may still name the server that is being demoted
      const claims = yield* Effect.filter(named, saysMaster, { concurrency: "unbounded" })
      return claims[0] ?? named[0]!
    })

    const failover = Effect.gen(function* () {
      const before = yield* master
      // refused for a moment if a sentinel has not yet heard from the replicas
      yield* eventually(
        "a sentinel begins the failover",
        Effect.as(command(sentinels[0]!, "SENTINEL", "FAILOVER", name), true)
      )
      yield* eventually(
        "a replica is the master, and the former master is not",
        Effect.gen(function* () {
          const after = yield* master
          return after !== before && (yield* isMaster(after)) && !(yield* isMaster(before))
        })
      )
    })

    return {
      name,
      servers,
      sentinels,
      master: surfacing(master),
      failover: surfacing(failover)
    } satisfies RedisSentinel
  },
  surfacing
)
