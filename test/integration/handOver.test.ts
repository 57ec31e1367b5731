/**
 * What a section under a plain lock costs, and how long anybody waits for it, however many clients contend; and what becomes of a lock
 * whose next owner is dead or stopped.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Scope } from "effect"
import { FencedLock, Lock, SpinLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { start } from "../faults/processes.ts"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"

const ask = <A>(answer: () => Promise<A>) => Effect.promise(answer)

/** How many scripts were run since the last reset. */
const scriptsRun = (redis: Redis) =>
  ask(async () => {
    let scripts = 0
    const stats = await redis.info("commandstats")
    for (const [, calls] of stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)) scripts += Number(calls)
    return scripts
  })

// nobody asks by the clock
const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 hour" } as const

describe("a plain lock for which many clients contend", () => {
  for (const count of [2, 24]) {
    it.live(
      `${count} clients need no more than three scripts a section and a few, and each has its turn among the others`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const each = 20
          const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
          let entered = 0
          /** How many sections of others came between a request and its own section. */
          const waited: Array<number> = []
          const section = Effect.suspend(() => {
            const before = entered
            return Effect.gen(function* () {
              waited.push(entered++ - before)
              yield* Effect.sleep(2)
            }).pipe(Lock.withLock("ledger"))
          })
          const all = (times: number) =>
            Effect.forEach(clients, ({ run }) => run(Effect.repeat(section, { times: times - 1 })), {
              concurrency: "unbounded",
              discard: true
            })
          // all have subscribed after these
          yield* all(2)
          waited.length = 0
          yield* ask(() => redis.config("RESETSTAT"))
          yield* all(each)
          const scripts = (yield* scriptsRun(redis)) / (count * each)
          assert.isBelow(scripts, 3.6)
          assert.isAtMost(Math.max(...waited), 2 * count)
        })
      )
    )
  }
})

describe("a spin lock", () => {
  it.live(
    "gets a lock that clients hand over to each other without a pause",
    onServer(({ server }) =>
      Effect.gen(function* () {
        const others = [yield* client(server, patient), yield* client(server, patient)]
        const spinner = yield* client(server, patient)
        const busy = Effect.forever(Lock.withLock(Effect.sleep(2), "ledger"))
        yield* Effect.forkScoped(
          Effect.forEach(others, ({ run }) => run(busy), {
            concurrency: "unbounded"
          })
        )
        for (let turn = 0; turn < 3; turn++) {
          yield* spinner.run(Lock.withLock(Effect.void, SpinLock.make("ledger")))
        }
      })
    )
  )
})

describe("a lock that is to be handed over to a process", () => {
  const lock = FencedLock.make("ledger")

  /** A process that waits, and a client behind it; the holder leaves when `signal` has been sent to the process, and has had its effect. */
  const after = (signal: "SIGKILL" | "SIGSTOP") =>
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const hasPlaces = (count: number) =>
          eventually(
            `${count} have places`,
            () => redis.zcard("effect_redis_lock_places:{ledger}"),
            (found) => found === count
          )
        const holder = yield* client(server, patient)
        // to whom it is handed over at once need not ask by the clock
        const waiter = yield* client(server, signal === "SIGKILL" ? patient : undefined)
        const scope = yield* Effect.scope
        const next = yield* Effect.gen(function* () {
          const settings = { url: server.url, kind: "fenced", lock: "ledger", fibers: 1 } as const
          const process = yield* Scope.provide(start("worker", settings), scope)
          const { clientId } = yield* process.told("ready")
          const listens = (listens: boolean) =>
            eventually(
              listens ? "the process listens" : "the process listens no more",
              () => redis.pubsub("CHANNELS", `redisson_lock__channel:{ledger}:${clientId}`),
              (channels) => (channels as Array<unknown>).length === (listens ? 1 : 0)
            )
          yield* hasPlaces(1)
          yield* listens(true)
          const next = yield* Effect.forkDetach(waiter.run(Lock.withLock(Effect.void, lock)))
          yield* hasPlaces(2)
          yield* process.signal(signal)
          yield* listens(signal === "SIGSTOP")
          return next
        }).pipe(Lock.withLock(lock), holder.run)
        yield* Fiber.join(next)
      })
    )

  it.live("passes over a process that is dead, at once", after("SIGKILL"))
  it.live("goes to somebody else when a process that is stopped does not ask for it", after("SIGSTOP"))
})
