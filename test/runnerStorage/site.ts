/**
 * A cluster of runner processes on a Redis, with a client that sends messages to its entities.
 */
import { anomaliesOf, checked } from "@effect-redis-lock/chaos/check"
import { now } from "@effect-redis-lock/chaos/events"
import type { Operation } from "@effect-redis-lock/chaos/history"
import { RedisRunnerStorage } from "@effect-redis-lock/cluster"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { NodeClusterSocket } from "@effect/platform-node"
import { Context, Effect, Layer, References } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import type { Redis } from "ioredis"
import { type Process, start } from "../faults/processes.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { freePort } from "../kit/server/onFreePort.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { Counter, nameOf, type RunnerEvent, shardCount, shardingOptions, type Told } from "./entities.ts"
import { continued, historyOf, lagMillis, stallsOf } from "./judge.ts"
import { serveMessages } from "./messages.ts"

/** A runner process. */
export interface RunnerProcess extends Process<RunnerEvent> {
  readonly number: number
  readonly name: string
  readonly port: number
}

/** Opens a site: nothing runs yet. */
export const openSite = Effect.fnUntraced(
  function* ({ leaseMillis, url }: { readonly url: string; readonly leaseMillis: number }) {
    const redis: Redis = yield* bare({ url })
    const prefix = `site-${crypto.randomUUID().slice(0, 8)}`
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
    yield* Effect.addFinalizer(() => Effect.promise(() => redis.del(`{${prefix}}:runners`, `{${prefix}}:shards`)))

    /** How many shards each process at an address owns now, by the leases in Redis. */
    const owners = Effect.gen(function* () {
      const now = yield* serverTime(redis)
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
    const runners: Array<RunnerProcess> = []

    /** All that they have told so far, in the order of time. */
    const told = () =>
      runners
        .flatMap(({ events, number }) => events.map((event): Told => ({ ...event, process: number })))
        .sort((one, other) => one.at - other.at)

    return {
      /** Starts a runner: at a port of its own, or at that of one that has ended. */
      start: Effect.fnUntraced(function* (port?: number) {
        const number = runners.length + 1
        const at = port ?? (yield* freePort)
        const settings = { process: number, url, prefix, port: at, messagesPort, leaseMillis }
        const runner = { ...(yield* start("runner", settings)), number, name: nameOf(number), port: at }
        runners.push(runner)
        return runner
      }),
      /**
       * Waits until these runners, and no others, own all shards, each its share. Tells how long that took from a time
       * on.
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
        return Math.round(now() - since)
      }),
      /** How long the slowest of these runners got nowhere since then, as the machine was busy. */
      lagSince: (runners: ReadonlyArray<RunnerProcess>, from: number) =>
        Math.round(lagMillis(told(), { from, to: now(), processes: runners.map(({ number }) => number) })),
      stop: Effect.fnUntraced(function* (runner: RunnerProcess) {
        const from = now()
        yield* runner.signal("SIGSTOP")
        // it may be running on another CPU
        yield* Effect.sleep(20)
        const stopped = now()
        const resume = Effect.suspend(() => {
          stops.push({ process: runner.number, from, stopped, resumed: now() })
          return runner.signal("SIGCONT")
        })
        return { from, resume }
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
      /** What was done to entities, shards and the rest: the history of a chaos run. */
      history: () => {
        const all = told()
        return historyOf(all, [...stops.map((stop) => continued(all, stop)), ...stallsOf(all, leaseMillis)])
      },
      summary: () => {
        const holds = told().flatMap((event) => (event.event === "stays" ? [`${event.lock} ${event.hold}`] : []))
        const runs = (kind: string) => new Set(holds.filter((hold) => hold.startsWith(kind))).size
        return `${sent.length} messages in ${runs("entity")} runs, ${runs("cron")} ticks, ${runs("singleton")} starts of the singleton`
      }
    }
  },
  Effect.provideService(References.MinimumLogLevel, "Error")
)

/** What ran in two places at once; nothing is found where the checker cannot be built. */
export const violationsOf = (history: ReadonlyArray<Operation>) =>
  Effect.map(
    Effect.promise(() => checked(history)),
    (verdicts) => {
      if (typeof verdicts !== "string") return anomaliesOf(verdicts).map(({ what }) => what)
      // nothing is left out there
      if (process.env.CI) return [verdicts]
      console.error(`not checked by Porcupine: ${verdicts}`)
      return []
    }
  )
