/**
 * A cluster of runner processes on a Redis, with a client that sends messages to its entities.
 */
import { RedisRunnerStorage } from "@effect-redis-lock/cluster"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { NodeClusterSocket } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, References, type Scope } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import type { Redis } from "ioredis"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { type Claim, Counter, type RunnerSettings, shardCount, shardingOptions, type Step } from "./entities.ts"
import { continued, doubleOwners, lagMillis, overlappingRuns, stallsOf } from "./judge.ts"
import { serveMessages } from "./messages.ts"

/** A runner process. */
export interface RunnerProcess {
  readonly name: string
  readonly port: number
  readonly signal: (name: "SIGSTOP" | "SIGCONT" | "SIGKILL" | "SIGTERM") => Effect.Effect<void>
  /** Waits until it has ended, for a minute at most, and tells its exit code: null where a signal has ended it. */
  readonly ended: Effect.Effect<number | null>
  /** What it has printed. */
  readonly output: () => string
}

const freePort = Effect.promise(async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
})

const spawnRunner = Effect.fnUntraced(function* (
  settings: RunnerSettings
): Effect.fn.Return<RunnerProcess, never, Scope.Scope> {
  const here = fileURLToPath(new URL("fixtures/runner.js", import.meta.url))
  const program = existsSync(here) ? here : here.replace("/test/runnerStorage/", "/test/dist/runnerStorage/")
  let output = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync((): ChildProcess => {
      const child = spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: ["ignore", "pipe", "pipe"] })
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding("utf8").on("data", (text: string) => (output += text))
      }
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  return {
    name: settings.process,
    port: settings.port,
    signal: (name) => Effect.sync(() => void child.kill(name)),
    ended: Effect.promise(async () => {
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
      return child.exitCode
    }).pipe(
      Effect.timeoutOrElse({
        duration: "1 minute",
        orElse: () => Effect.die(new Error(`${settings.process} did not end within a minute; its output:\n${output}`))
      })
    ),
    output: () => output
  }
})

/** Opens a site: nothing runs yet. */
export const openSite = Effect.fnUntraced(
  function* ({ leaseMillis, url }: { readonly url: string; readonly leaseMillis: number }) {
    const redis: Redis = yield* bare({ url })
    const prefix = `site-${crypto.randomUUID().slice(0, 8)}`
    const log = `{${prefix}}:log`
    const driver = Context.get(yield* Layer.build(MessageStorage.MemoryDriver.layer), MessageStorage.MemoryDriver)
    const { port: messagesPort, reads } = yield* serveMessages(driver.encoded)
    const sharding = shardingOptions(leaseMillis, undefined)
    const client = yield* Layer.build(
      NodeClusterSocket.layer({ clientOnly: true, storage: "byo", shardingConfig: sharding }).pipe(
        Layer.provide([
          RedisRunnerStorage.layer({ prefix }).pipe(
            Layer.provide(IoRedis.layer({ url })),
            Layer.provide(ShardingConfig.layer(sharding))
          ),
          Layer.succeed(MessageStorage.MessageStorage, driver.storage)
        ])
      )
    )
    yield* Effect.addFinalizer(() => Effect.promise(() => redis.del(log, `{${prefix}}:runners`, `{${prefix}}:shards`)))

    const serverMillis = serverTime(redis)

    /** How many shards each process at an address owns now, by the leases in Redis. */
    const owners = Effect.gen(function* () {
      const now = yield* serverMillis
      const fields = yield* Effect.promise(() => redis.hgetall(`{${prefix}}:shards`))
      const counts = new Map<string, number>()
      for (const lease of Object.values(fields)) {
        // of a shard this is the lease, which is a field itself
        const [until] = (fields[lease] ?? "").split(" ")
        const owner = lease.slice(0, lease.lastIndexOf(" "))
        if (Number(until) > now) counts.set(owner, (counts.get(owner) ?? 0) + 1)
      }
      return counts
    })

    const stops: Array<Parameters<typeof continued>[1]> = []
    const sent: Array<string> = []
    let started = 0

    const lines = Effect.map(
      Effect.promise(() => redis.lrange(log, 0, -1)),
      (all) =>
        all.map((line) => {
          const space = line.indexOf(" ")
          return { at: Number(line.slice(0, space)), ...(JSON.parse(line.slice(space + 1)) as object) } as Step | Claim
        })
    )
    const steps = Effect.map(lines, (all) => all.filter((line): line is Step => "run" in line))
    const claims = Effect.map(lines, (all) => all.filter((line): line is Claim => "shards" in line))

    return {
      redis,
      serverMillis,
      owners,
      steps,
      claims,
      /** Starts a runner: at a port of its own, or at that of one that has ended. */
      start: Effect.fnUntraced(function* (port?: number) {
        return yield* spawnRunner({
          process: `runner${++started}`,
          url,
          prefix,
          port: port ?? (yield* freePort),
          messagesPort,
          leaseMillis,
          log
        })
      }),
      /**
       * Waits until these runners, and no others, own all shards, each its share. Tells how long that took by the server's time,
       * from a time on.
       */
      balanced: Effect.fnUntraced(function* (runners: ReadonlyArray<RunnerProcess>, since: number) {
        yield* eventually(
          `${runners.map(({ name }) => name).join(", ")} own all shards`,
          Effect.map(owners, (counts) => [...counts]),
          (counts) =>
            counts.reduce((sum, [, count]) => sum + count, 0) === shardCount &&
            counts.length === runners.length &&
            runners.every(({ port }) => counts.some(([owner]) => owner.startsWith(`127.0.0.1:${port} `)))
        )
        return (yield* serverMillis) - since
      }),
      /** How long the slowest of these runners got nowhere since then, as the machine was busy. */
      lagSince: Effect.fnUntraced(function* (runners: ReadonlyArray<RunnerProcess>, from: number) {
        return lagMillis(yield* claims, { from, to: yield* serverMillis, processes: runners.map(({ name }) => name) })
      }),
      stop: Effect.fnUntraced(function* (runner: RunnerProcess) {
        const from = yield* serverMillis
        yield* runner.signal("SIGSTOP")
        const stopped = yield* serverMillis
        return {
          from,
          resume: Effect.gen(function* () {
            yield* runner.signal("SIGCONT")
            stops.push({ process: runner.name, from, stopped, resumed: yield* serverMillis })
          })
        }
      }),
      /** Sends one message to each of so many entities. It cannot be interrupted in between: what counts as sent is stored. */
      send: Effect.fnUntraced(
        function* (entities: number) {
          const clientOf = yield* Counter.client
          yield* Effect.forEach(
            Array.from({ length: entities }, (_, entity) => `${entity}`),
            (entity) => {
              const message = `${entity}-${sent.length}`
              sent.push(message)
              return clientOf(entity).Count({ message }, { discard: true })
            },
            { concurrency: "unbounded", discard: true }
          )
        },
        Effect.uninterruptible,
        Effect.provideContext(client)
      ),
      /** Waits until every message that was sent is answered: handled to its end, and its reply kept. */
      allHandled: Effect.suspend(() =>
        eventually(
          "every message is answered; left are those that were last seen",
          () => {
            const now = performance.now()
            const left = new Map(sent.map((message) => [message, "it was never stored"]))
            for (const { envelope, replies } of driver.requests.values()) {
              if (envelope._tag !== "Request" || envelope.address.entityType !== Counter.type) continue
              const { message } = envelope.payload as { readonly message: string }
              const read = reads.get(envelope.requestId)
              if (replies.some((reply) => reply._tag === "WithExit")) left.delete(message)
              else if (read === undefined) left.set(message, "nobody has read it")
              else left.set(message, `${read.reader} read it last, ${Math.round(now - read.at)} ms ago`)
            }
            return left
          },
          (left) => left.size === 0
        )
      ),
      /** What must never happen, and did. */
      violations: Effect.gen(function* () {
        const all = yield* lines
        const inactive = [...stops.map((stop) => continued(all, stop)), ...stallsOf(all, leaseMillis)]
        return [...overlappingRuns(yield* steps, inactive), ...doubleOwners(yield* claims, inactive)]
      }),
      summary: Effect.map(steps, (all) => {
        const runs = (kind: string) =>
          new Set(all.filter(({ what }) => what.startsWith(kind)).map(({ run }) => run)).size
        return `${sent.length} messages in ${runs("entity")} runs, ${runs("cron")} ticks, ${runs("singleton")} starts of the singleton`
      })
    }
  },
  Effect.provideService(References.MinimumLogLevel, "Error")
)

export const assertNone = (violations: ReadonlyArray<string>) =>
  assert.deepStrictEqual(violations, [], "something ran in two places at once")
