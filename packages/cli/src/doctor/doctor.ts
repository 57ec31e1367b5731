/**
 * `redis-lock doctor`: whether a Redis is fit for locks, and what to do if it is not.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { type InvalidLockOptions, RedisDriver } from "effect-redis-lock"
import { randomUUID } from "node:crypto"
import { type Check, type Driver, ok, problem, scriptOf, warning, wordsOf } from "./check.ts"
import { ExitCode, ExitWith } from "../exit.ts"
import { commands, kinds, subscription, tracking } from "./permissions.ts"
import { addressOf, placeOf, type Target } from "../redis.ts"
import { type Column, print, printJson, table } from "../text.ts"
import { inert } from "../visible.ts"

interface Server {
  /** Host and port, or what its URL says of them if it cannot be reached. */
  readonly server: string
  readonly isReachable: boolean
  readonly checks: ReadonlyArray<Check>
}

export const doctor = ({ json, prefix, redis }: Target & { readonly json: boolean }): Effect.Effect<void, ExitWith> =>
  Effect.gen(function* () {
    const servers = yield* Effect.forEach(redis, (url) => examine(url, prefix))
    yield* json
      ? printJson({ servers: servers.map(({ checks, server }) => ({ server, checks })) })
      : print(servers.map(textOf).join("\n"))
    if (servers.some(({ isReachable }) => !isReachable)) {
      return yield* new ExitWith({ code: ExitCode.unreachable, message: "" })
    }
    if (servers.some(({ checks }) => checks.some(({ level }) => level === "problem"))) {
      return yield* new ExitWith({ code: ExitCode.unhealthy, message: "" })
    }
  })

const columns: ReadonlyArray<Column<Check>> = [
  { title: "CHECK", of: ({ check }) => check },
  { title: "LEVEL", of: ({ level }) => level },
  // messages quote what the server says
  { title: "MESSAGE", of: ({ message }) => inert(message) }
]

const textOf = ({ checks, server }: Server): string => `${inert(server)}\n${table(columns, checks)}`

const examine = (url: Redacted.Redacted, prefix: string): Effect.Effect<Server> =>
  Effect.gen(function* () {
    const driver = yield* RedisDriver.RedisDriver
    const name = `${prefix}redis-lock:doctor:{${randomUUID()}}`
    const checks = [...(yield* fromInfo(driver, name, url))]
    // where no lock can be kept, all else would only say so again
    if (checks.every(({ check, level }) => check !== "mode" || level === "ok")) {
      checks.push(
        yield* commands(driver, name),
        ...(yield* kinds(prefix)),
        yield* subscription(driver, name),
        yield* tracking(driver),
        yield* latency(driver, name)
      )
    }
    return { server: driver.address?.() ?? placeOf(url), isReachable: true, checks }
  }).pipe(
    Effect.provide(IoRedis.layer({ url, warnings: [] })),
    Effect.catch((error: RedisDriver.RedisDriverError | InvalidLockOptions) =>
      Effect.succeed({ server: placeOf(url), isReachable: false, checks: [problem("connection", error.message)] })
    )
  )

/** Whether INFO itself is what this user may not do, rather than scripts or the key. */
const refusesInfo = (error: RedisDriver.RedisDriverError): boolean =>
  error.reason === "NoPermission" && !/\beval(sha)?\b|\bkeys?\b/i.test(wordsOf(error))

const info = scriptOf("doctor/info", "return redis.call('INFO')")

/** What INFO tells. It goes through a script, so that on a cluster it is answered by the server of the name. */
const fromInfo = (driver: Driver, name: string, url: Redacted.Redacted): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.gen(function* () {
    const sentAt = Date.now()
    const text = String(yield* driver.eval(info, [name], []))
    const receivedAt = Date.now()
    const field = (key: string): string | undefined => new RegExp(`^${key}:(.*?)\\r?$`, "m").exec(text)?.[1]
    const found = new Map<string, string>(
      IoRedis.problemsOf({ text, sentAt, receivedAt }).map(({ problem, warning }) => [warning, problem])
    )
    const micros = Number(field("server_time_usec"))
    const apart = Math.round(micros / 1000 - (sentAt + receivedAt) / 2)
    const fits = {
      eviction: `maxmemory-policy ${field("maxmemory_policy")}, ${field("maxmemory") === "0" ? "no limit of memory" : `limit ${field("maxmemory_human")}`}`,
      persistence: field("aof_enabled") === "0" ? "saves snapshots" : "append-only file",
      replicas: "none",
      clock: Number.isNaN(micros)
        ? "not reported by this version"
        : `${Math.abs(apart)} ms ${apart < 0 ? "behind" : "ahead of"} this machine's`
    }
    return [
      version(field("valkey_version"), field("redis_version")),
      mode(field("redis_mode"), field("role"), addressOf(url)._tag === "Cluster"),
      ...(Object.keys(fits) as ReadonlyArray<keyof typeof fits>).map((check) => {
        const message = found.get(check)
        if (message === undefined) return ok(check, fits[check])
        return check === "eviction" ? problem(check, message) : warning(check, message)
      })
    ]
  }).pipe(Effect.catch((error: RedisDriver.RedisDriverError) => Effect.succeed([withoutInfo(error)])))

/** What the failure to ask for INFO, by a script, says of the server. */
const withoutInfo = (error: RedisDriver.RedisDriverError): Check => {
  if (error.reason === "ClusterMismatch") return nodeAlone
  const words = wordsOf(error)
  if (/unknown command\W+eval/i.test(words)) {
    return problem(
      "mode",
      "this runs no scripts, as a sentinel. Lead to its master by redis+sentinel://HOST,HOST/NAME."
    )
  }
  return warning(
    "info",
    refusesInfo(error)
      ? "INFO is not permitted, so version, mode, eviction, persistence, replicas and clock are unknown. Allow it: ACL SETUSER ... +info"
      : `INFO failed: ${words}`
  )
}

const version = (valkey: string | undefined, redis: string | undefined): Check => {
  if (valkey !== undefined) return ok("version", `Valkey ${valkey}`)
  const [major = 0, minor = 0] = (redis ?? "").split(".").map(Number)
  return major > 6 || (major === 6 && minor >= 2)
    ? ok("version", `Redis ${redis}`)
    : problem("version", `Redis ${redis} lacks commands that the locks need. Update to 6.2 or newer.`)
}

const nodeAlone = problem(
  "mode",
  "this is a node of a cluster, which may keep only some of the locks. Lead to all by redis+cluster://HOST,HOST."
)

const mode = (mode: string | undefined, role: string | undefined, isWhole: boolean): Check => {
  if (role === "slave") return problem("mode", "this is a replica, which cannot grant locks. Lead to its master.")
  if (mode === "cluster" && !isWhole) return nodeAlone
  return ok("mode", mode === "cluster" ? "a master of a cluster" : `${mode ?? "unknown"}, master`)
}

const nothing = scriptOf("doctor/nothing", "return 1")
const pings = 100

/** A tenth of the shortest lease of the command line. */
const slowMillis = 100

/** Round trips of a script that does nothing: the way that every command of the locks takes. */
const latency = (driver: Driver, name: string): Effect.Effect<Check> =>
  Effect.gen(function* () {
    const millis: Array<number> = []
    for (let i = 0; i < pings; i++) {
      const [took] = yield* Effect.timed(driver.eval(nothing, [name], []))
      millis.push(Duration.toMillis(took))
    }
    millis.sort((a, b) => a - b)
    const at = (share: number) => millis[Math.ceil(share * pings) - 1]!
    const message = `p50 ${at(0.5).toFixed(2)} ms, p99 ${at(0.99).toFixed(2)} ms`
    return at(0.99) < slowMillis
      ? ok("latency", message)
      : warning(
          "latency",
          `${message}: each section waits for two of these. Look at SLOWLOG, the network and the machine's load.`
        )
  }).pipe(Effect.catch((error: RedisDriver.RedisDriverError) => Effect.succeed(problem("latency", wordsOf(error)))))
