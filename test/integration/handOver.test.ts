/**
 * What a section under a plain lock or a read-write lock costs, and how long anybody waits for it, however many clients contend; and what
 * becomes of a lock whose next owner is dead or stopped.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Scope } from "effect"
import { FencedLock, Lock, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { start } from "../faults/processes.ts"
import { type Client, client } from "../kit/clients.ts"
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

const { readLock, writeLock } = ReadWriteLock.make("ledger")

type AnyLock = Lock.Lock<RedisLock.RedisLock, unknown>

/** How many sections, of readers and of writers, came between a request and its own section. */
interface Waited {
  readonly writers: number
  readonly readers: number
}

/** Runs sections of all clients without a pause, and returns the scripts that one costs, and how long each has waited. */
const contend = Effect.fnUntraced(function* (
  redis: Redis,
  clients: ReadonlyArray<readonly [Client, ReadonlyArray<AnyLock>]>,
  each: number
) {
  let writers = 0
  let readers = 0
  const waited: Array<Waited> = []
  const sections = (lock: AnyLock, times: number) =>
    Effect.suspend(() => {
      const before = { writers, readers }
      return Effect.suspend(() => {
        waited.push({ writers: writers - before.writers, readers: readers - before.readers })
        if (lock === readLock) readers++
        else writers++
        return Effect.sleep(2)
      }).pipe(Lock.withLock(lock))
    }).pipe(Effect.repeat({ times: times - 1 }))
  const all = (times: number) =>
    Effect.forEach(
      clients,
      ([{ run }, locks]) =>
        run(Effect.forEach(locks, (lock) => sections(lock, times), { concurrency: "unbounded", discard: true })),
      { concurrency: "unbounded", discard: true }
    )
  // all have subscribed after these
  yield* all(2)
  waited.length = 0
  yield* ask(() => redis.config("RESETSTAT"))
  yield* all(each)
  return { scripts: (yield* scriptsRun(redis)) / waited.length, waited }
})

const most = (waited: ReadonlyArray<Waited>, side: keyof Waited) => Math.max(...waited.map((it) => it[side]))

for (const [title, lock] of [
  ["a plain lock", Lock.make("ledger")],
  ["a write lock", writeLock]
] as const) {
  describe(`${title} for which many clients contend`, () => {
    for (const count of [2, 8, 24]) {
      it.live(
        `${count} clients need no more than three scripts a section and a few, and each has its turn among the others`,
        onServer(({ redis, server }) =>
          Effect.gen(function* () {
            const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
            const { scripts, waited } = yield* contend(
              redis,
              clients.map((it) => [it, [lock]]),
              20
            )
            assert.isBelow(scripts, 3.6)
            assert.isAtMost(most(waited, "writers"), 2 * count)
          })
        )
      )
    }
  })
}

describe("a read-write lock for which readers and writers contend", () => {
  for (const count of [2, 8, 24]) {
    it.live(
      `${count} clients, half of which write, need no more than three scripts a section and a few, and each has its turn`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
          const { scripts, waited } = yield* contend(
            redis,
            clients.map((it, i) => [it, [i % 2 === 0 ? writeLock : readLock]]),
            20
          )
          assert.isBelow(scripts, 3.6)
          assert.isAtMost(most(waited, "writers"), 2 * count)
          assert.isAtMost(most(waited, "readers"), 2 * count)
        })
      )
    )

    it.live(
      `in each of ${count} clients a fiber that writes and three that read have their turn`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
          const { scripts, waited } = yield* contend(
            redis,
            clients.map((it) => [it, [writeLock, readLock, readLock, readLock]]),
            20
          )
          assert.isBelow(scripts, 3.6)
          assert.isAtMost(most(waited, "writers"), 2 * count)
          assert.isAtMost(most(waited, "readers"), 8 * count)
        })
      )
    )
  }
})

describe("a lock that is to be handed over to a process", () => {
  /** A process that waits, and a client behind it; the holder leaves when `signal` has been sent to the process, and has had its effect. */
  const after = (signal: "SIGKILL" | "SIGSTOP", kind: "fenced" | "read" | "write", lock: AnyLock) =>
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
        const channel = kind === "fenced" ? "redisson_lock__channel" : "redisson_rwlock"
        const next = yield* Effect.gen(function* () {
          const settings = { url: server.url, kind, lock: "ledger", fibers: 1 } as const
          const process = yield* Scope.provide(start("worker", settings), scope)
          const { clientId } = yield* process.told("ready")
          const listens = (listens: boolean) =>
            eventually(
              listens ? "the process listens" : "the process listens no more",
              () => redis.pubsub("CHANNELS", `${channel}:{ledger}:${clientId}`),
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

  const kinds = [
    [" that waits", "fenced", FencedLock.make("ledger")],
    [" that waits to write", "write", writeLock],
    [" that waits to read", "read", writeLock]
  ] as const
  for (const [waits, kind, lock] of kinds) {
    it.live(`passes over a process${waits} and is dead, at once`, after("SIGKILL", kind, lock))
    it.live(
      `goes to somebody else when a process${waits} and is stopped does not ask for it`,
      after("SIGSTOP", kind, lock)
    )
  }
})
