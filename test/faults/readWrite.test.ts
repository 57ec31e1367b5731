import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import { hold, waitFor } from "./kinds.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { start } from "./processes.ts"

const { readLock, writeLock } = ReadWriteLock.make("page")
const patient = { watchdogLeaseTime: "5 minutes", fallbackInterval: "1 second" } as const

const forget = (redis: { readonly del: (...keys: Array<string>) => Promise<number> }) =>
  Effect.promise(() => redis.del("log", "read log", "write log"))

describe("a read-write lock", () => {
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
})
