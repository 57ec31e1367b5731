import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { type Client, client, clientOver } from "../kit/clients.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { eventually } from "../kit/eventually.ts"
import { subscribers } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { type AnyLock, entries, hold, waitFor } from "./kinds.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { start } from "./processes.ts"

const { readLock, writeLock } = ReadWriteLock.make("page")
const patient = { watchdogLeaseTime: "5 minutes", fallbackInterval: "1 second" } as const

/** How many sections the log knows of. */
const begun = (redis: Redis) => Effect.promise(() => redis.llen("log"))

/**
 * Waits for a lock, and holds it: tells how many sections of others came between its place and its grant. They are counted at the server,
 * whose log is complete then: each section is written down before it goes on.
 */
const passedOver = Effect.fnUntraced(function* (
  redis: Redis,
  who: Client,
  lock: AnyLock,
  isPlace: (member: string) => boolean
) {
  const waiter = yield* waitFor(who, lock)
  // the places and the log as they were at one moment
  const look = async () => {
    const [[, members], [, sections]] = (await redis
      .multi()
      .zrange("effect_redis_lock_places:{page}", "0", "-1")
      .llen("log")
      .exec()) as [[null, ReadonlyArray<string>], [null, number]]
    return { waits: members.some(isPlace), sections }
  }
  const before = yield* eventually("it has its place, or the lock", look, ({ waits }) => waits || waiter.hasEntered())
  const holding = yield* waiter.entered
  const sections = before.waits ? (yield* begun(redis)) - before.sections : 0
  return { holding, sections }
})

const forget = (redis: { readonly del: (...keys: Array<string>) => Promise<number> }) =>
  Effect.promise(() => redis.del("log", "read log", "write log"))

describe("a read-write lock", () => {
  it.live(
    "A read-write lock with 20 readers in a loop in 4 processes lets a writer in before they have read twice each",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const readers = { url: server.url, kind: "read", lock: "page", fibers: 5, work: 20, log: "log" } as const
        const processes = yield* Effect.forEach([1, 2, 3, 4], () => start("worker", readers), {
          concurrency: "unbounded"
        })
        yield* Effect.forEach(processes, (process) => process.told("entered"))
        yield* entries(redis, "log", 200)
        const mine = yield* client(server, patient)
        // of its own client alone: nobody else writes
        const isWriter = (member: string) => member.endsWith(":write")
        for (let i = 0; i < 5; i++) {
          const { holding, sections } = yield* passedOver(redis, mine, writeLock, isWriter)
          // Without a preference it never gets in: there is always somebody who reads. With it, the bound is twice the readers, beside
          // those that had been let in before and had not yet said so.
          assert.isAtMost(sections, 2 * 20 + 20)
          yield* holding.release
          // and the readers come in again
          yield* entries(redis, "log", (yield* begun(redis)) + 20)
        }
        yield* Effect.forEach(processes, (process) => process.signal("SIGKILL"))
        // dead readers keep the lock for their leases
        yield* Effect.promise(() => redis.flushall())
      })
    )
  )

  it.live(
    "A read-write lock with 4 writers in a loop in 4 processes lets a reader in before they have had four turns each",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const writers = { url: server.url, kind: "write", lock: "page", fibers: 1, work: 2, log: "log" } as const
        const processes = yield* Effect.forEach([1, 2, 3, 4], () => start("worker", writers), {
          concurrency: "unbounded"
        })
        yield* entries(redis, "log", 40)
        const mine = yield* client(server, patient)
        // the places of writers, and what tells when they last asked, end with more than their owners
        const isReader = (member: string) => /:\d+$/.test(member)
        for (let i = 0; i < 5; i++) {
          const { holding, sections } = yield* passedOver(redis, mine, readLock, isReader)
          // twice two turns of each other process, and the section that had been let in and had not yet said so
          assert.isAtMost(sections, 4 * 4 + 1)
          yield* holding.release
          yield* entries(redis, "log", (yield* begun(redis)) + 10)
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
        const { owner } = yield* doomed.told("entered")
        const mine = yield* client(server, { watchdogLeaseTime: "1 hour" })
        const reading = yield* hold(mine, readLock)
        yield* doomed.signal("SIGKILL")
        const killedAt = yield* serverTime(redis)
        const deadUntil = Number(yield* Effect.promise(() => redis.zscore("effect_redis_lock_readers:{page}", owner)))
        assert.isTrue(deadUntil > 0 && deadUntil <= killedAt + lease, `${deadUntil - killedAt} ms after the kill`)
        // as a renewal does
        yield* reading.renew("1 hour")
        const writer = yield* waitFor(yield* client(server), writeLock)
        yield* reading.release
        // by the server's own clock the lock now ends with the dead reader's lease, unless it already has
        const [mode, left, now] = yield* Effect.promise(async () => {
          const [[, mode], [, left], [, [seconds, micros]]] = (await redis
            .multi()
            .hget("page", "mode")
            .pttl("page")
            .time()
            .exec()) as [[null, string | null], [null, number], [null, [string, string]]]
          return [mode, left, Number(seconds) * 1000 + Number(micros) / 1000] as const
        })
        if (mode === "read") assert.isAtMost(now + left, deadUntil + 1)
        const writing = yield* writer.entered
        // a token is the server's time of the grant, in microseconds
        assert.isAtLeast(Number(writing.token) / 1000, deadUntil)
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
    "A stopped process that waits for a write lock does not keep readers out for good, and writes once it goes on",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const mine = yield* client(server, patient)
        const reading = yield* hold(mine, readLock)
        const stopped = yield* start("worker", { url: server.url, kind: "write", lock: "page", fibers: 1, work: 1 })
        yield* eventually(
          "it waits",
          () => redis.zcount("effect_redis_lock_places:{page}", "-inf", 4e15),
          (places) => places === 1
        )
        yield* stopped.signal("SIGSTOP")
        const tried = yield* mine.run(Effect.scoped(Lock.withOwner(Lock.tryScoped(readLock))))
        assert.isTrue(Option.isNone(tried), "it counts for five seconds")
        const another = yield* (yield* waitFor(yield* client(server, patient), readLock)).entered
        assert.isFalse(stopped.hasTold("entered"))
        yield* stopped.signal("SIGCONT")
        yield* another.release
        yield* reading.release
        yield* stopped.told("entered")
        yield* stopped.signal("SIGKILL")
        yield* Effect.promise(() => redis.flushall())
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
