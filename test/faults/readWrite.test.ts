import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { ReadWriteLock } from "effect-redis-lock"
import { client, clientOver } from "../kit/clients.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { subscribers } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { entries, hold, serverTime, waitFor } from "./kinds.ts"
import { start } from "./processes.ts"

const { readLock, writeLock } = ReadWriteLock.make("page")
const patient = { watchdogLeaseTime: "5 minutes", fallbackInterval: "1 second" } as const

/** What a busy machine may add. */
const slack = 3000

const forget = (redis: { readonly del: (...keys: Array<string>) => Promise<number> }) =>
  Effect.promise(() => redis.del("log", "read log", "write log", "effect_redis_lock_writers:{page}"))

describe("a read-write lock", () => {
  it.live(
    "A read-write lock with 20 readers in a loop in 4 processes lets a writer in within a second",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const readers = { url: server.url, kind: "read", lock: "page", fibers: 5, work: 20, log: "log" } as const
        const processes = yield* Effect.forEach([1, 2, 3, 4], () => start("worker", readers), {
          concurrency: "unbounded"
        })
        yield* Effect.forEach(processes, (process) => process.told("entered"))
        yield* entries(redis, "log", 200)
        const mine = yield* client(server, patient)
        const waits: Array<number> = []
        for (let i = 0; i < 5; i++) {
          const [waited, writing] = yield* Effect.timed(hold(mine, writeLock))
          waits.push(Duration.toMillis(waited))
          yield* writing.release
          // and the readers come in again
          yield* entries(redis, "log", (yield* Effect.promise(() => redis.llen("log"))) + 20)
        }
        // without a preference it never gets in: there is always somebody who reads
        assert.isBelow(Math.min(...waits), 1000)
        assert.isBelow(Math.max(...waits), 1000 + slack)
        yield* Effect.forEach(processes, (process) => process.signal("SIGKILL"))
        // dead readers keep the lock for their leases
        yield* Effect.promise(() => redis.flushall())
      })
    )
  )

  it.live(
    "A read-write lock with 4 writers in a loop in 4 processes lets readers in",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const writers = { url: server.url, kind: "write", lock: "page", fibers: 1, work: 2, log: "log" } as const
        const processes = yield* Effect.forEach([1, 2, 3, 4], () => start("worker", writers), {
          concurrency: "unbounded"
        })
        yield* entries(redis, "log", 40)
        const mine = yield* client(server, patient)
        for (let i = 0; i < 5; i++) {
          const [waited, reading] = yield* Effect.timed(hold(mine, readLock))
          assert.isBelow(Duration.toMillis(waited), 1000 + slack)
          yield* reading.release
          yield* entries(redis, "log", (yield* Effect.promise(() => redis.llen("log"))) + 10)
        }
        yield* Effect.forEach(processes, (process) => process.signal("SIGKILL"))
        yield* Effect.promise(() => redis.flushall())
      })
    )
  )

  it.live(
    "A read-write lock is kept by a killed reader for its own lease, while readers of another client renew theirs and release",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const lease = 1500
        const settings = { url: server.url, kind: "read", lock: "page", fibers: 1, watchdogLeaseTime: lease } as const
        const doomed = yield* start("worker", settings)
        yield* doomed.told("entered")
        const mine = yield* client(server, { watchdogLeaseTime: "20 seconds" })
        const reading = yield* hold(mine, readLock)
        yield* doomed.signal("SIGKILL")
        const killedAt = yield* serverTime(redis)
        // as a renewal does
        yield* reading.renew("20 seconds")
        const writer = yield* waitFor(yield* client(server), writeLock)
        yield* reading.release
        const writing = yield* writer.entered
        const late = (yield* serverTime(redis)) - killedAt
        assert.isAtMost(late, lease + slack)
        yield* writing.release
        yield* forget(redis)
      })
    )
  )

  it.live(
    "A read-write lock whose writer is killed lets its waiters in when the lease is over: readers together, then the next writer",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const settings = { url: server.url, kind: "write", lock: "page", fibers: 1, watchdogLeaseTime: 1500 } as const
        const doomed = yield* start("worker", settings)
        const { token } = yield* doomed.told("entered")
        const readers = [
          yield* waitFor(yield* client(server), readLock),
          yield* waitFor(yield* client(server), readLock)
        ]
        yield* doomed.signal("SIGKILL")
        const [first, second] = [yield* readers[0]!.entered, yield* readers[1]!.entered]
        assert.strictEqual(String(first.token), token)
        yield* second.ensureHeld
        const writer = yield* waitFor(yield* client(server), writeLock)
        yield* first.release
        assert.isFalse(writer.hasEntered())
        yield* second.release
        const writing = yield* writer.entered
        assert.isTrue(writing.token > BigInt(token))
        yield* writing.release
        yield* forget(redis)
      })
    )
  )

  it.live(
    "A read-write lock serves waiters that receive no message on a connection that looks alive",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        const mine = yield* client(server, patient)
        const deaf = yield* clientOver(yield* bare(server), { ...patient, subscriptions: proxy })
        const writing = yield* hold(mine, writeLock)
        const readers = [yield* waitFor(deaf, readLock), yield* waitFor(deaf, readLock)]
        yield* subscribers(redis, "page", 1, "redisson_rwlock")
        yield* proxy.stallReplies
        yield* writing.release
        const reading = [yield* readers[0]!.entered, yield* readers[1]!.entered]
        const other = yield* hold(mine, readLock)
        const writer = yield* waitFor(deaf, writeLock)
        for (const { release } of [...reading, other]) yield* release
        yield* (yield* writer.entered).release
        yield* forget(redis)
      })
    )
  )
})
