/**
 * The clock of a server is set back, or a master takes over whose clock is behind, while clients have places.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FairLock, Lock, PermitSemaphore, ReadWriteLock, type RedisLock, Semaphore } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

const hour = 3_600_000_000

const { readLock, writeLock } = ReadWriteLock.make("ledger")
const semaphore = Semaphore.make("ledger", { permits: 1 })
const permits = PermitSemaphore.make("ledger", { permits: 1 })

const microsOf = (redis: Redis) =>
  Effect.promise(async () => {
    const [seconds, micros] = await redis.time()
    return Number(seconds) * 1e6 + Number(micros)
  })

type Section = Effect.Effect<unknown, unknown, RedisLock.RedisLock>
type Around = (body: Effect.Effect<void>) => Section

const withPermit: Around = (body) => Semaphore.withPermits(body, semaphore, 1)
const withLeasedPermit: Around = (body) => PermitSemaphore.withPermit(body, permits)

/** Far less than an hour. */
const waitTime = "20 seconds"

const lockPlaces = "effect_redis_lock_places:{ledger}"
const permitPlaces = "effect_redis_lock_permit_places:{ledger}"

const kinds: ReadonlyArray<readonly [kind: string, holder: Around, waiter: Around, places: string]> = [
  ["a plain lock", Lock.withLock("ledger"), Lock.withLock("ledger"), lockPlaces],
  ["a write lock", Lock.withLock(writeLock), Lock.withLock(writeLock), lockPlaces],
  ["a read lock", Lock.withLock(writeLock), Lock.withLock(readLock), lockPlaces],
  ["a semaphore", withPermit, withPermit, permitPlaces],
  ["a permit semaphore", withLeasedPermit, withLeasedPermit, permitPlaces]
]

describe("a place that was taken by a clock that is ahead of the server's", () => {
  for (const [kind, holder, waiter, places] of kinds) {
    testLive(`is not behind all that are taken from now on: a client that waits for ${kind}`, function* () {
      const server = yield* RedisServer.start()
      const redis = yield* bare(server)
      const first = yield* client(server)
      yield* sectionUntilTold<unknown, unknown, never>((body) => first.run(holder(body)))
      const before = yield* microsOf(redis)
      yield* Effect.forkScoped((yield* client(server)).run(waiter(Effect.void)))
      const place = () => redis.zrange(places, "0", "0", "WITHSCORES")
      const [owner = "", score = ""] = yield* eventually("the client has a place", place, (it) => it.length === 2)
      yield* Effect.promise(() => redis.zadd(places, String(Number(score) + hour), owner))
      // the time of its next request
      yield* eventually(
        "its place is no younger than its next request",
        place,
        (it) => Number(it[1]) < Number(score) + hour / 2
      )
      assert.isAbove(Number((yield* Effect.promise(place))[1]), before)
    })
  }
})

describe("the places of a fair queue that were kept by a clock that is ahead of the server's", () => {
  testLive("count for five seconds: those of the living are kept, and a dead process holds nobody up", function* () {
    const lock = FairLock.make("ledger")
    const [queue, timeouts] = ["redisson_lock_queue:{ledger}", "redisson_lock_timeout:{ledger}"]
    const clients = "effect_redis_lock_clients:{ledger}"
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const holder = yield* client(server)
    const { end } = yield* sectionUntilTold<unknown, unknown, never>((body) => holder.run(Lock.withLock(body, lock)))
    const now = Math.floor((yield* microsOf(redis)) / 1000)
    const dead = "aaaaaaaa-0000-4000-8000-000000000000"
    yield* Effect.promise(() =>
      redis
        .multi()
        .rpush(queue, `${dead}:1`)
        .zadd(timeouts, now + 330_000, `${dead}:1`)
        .zadd(clients, now + 1500, dead, now, "seen", 1, `${dead}:1`)
        .exec()
    )
    const served: Array<string> = []
    const waiters = yield* Effect.forEach(["first", "second"], (name, at) =>
      Effect.gen(function* () {
        const { run } = yield* client(server)
        const section = Lock.withLock(
          Effect.sync(() => served.push(name)),
          lock,
          { waitTime }
        )
        const waiter = yield* Effect.forkScoped(run(section))
        yield* eventually(
          `the ${name} has its place`,
          () => redis.llen(queue),
          (length) => length === at + 2
        )
        return waiter
      })
    )
    const noted = yield* Effect.promise(() => redis.zrange(clients, "0", "-1"))
    const shift = redis.multi()
    for (const member of noted) {
      if (member.length === 36 || member === "seen") shift.zincrby(clients, hour / 1000, member)
    }
    yield* Effect.promise(() => shift.exec())
    yield* end
    yield* Effect.forEach(waiters, Fiber.join)
    assert.deepStrictEqual(served, ["first", "second"])
  })
})

describe("a turn of clients without places that was noted by a clock that is ahead of the server's", () => {
  for (const [kind, lock] of [
    ["a plain lock", Lock.make("ledger")],
    ["a write lock", writeLock],
    ["a read lock", readLock]
  ] as const) {
    testLive(`is over: ${kind} that is free is granted`, function* () {
      const server = yield* RedisServer.start()
      const redis = yield* bare(server)
      const turn = (yield* microsOf(redis)) + hour
      // behind all places
      yield* Effect.promise(() => redis.zadd(lockPlaces, String(4e15 + turn), ""))
      const { run } = yield* client(server)
      assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("inside"), lock, { waitTime })), "inside")
    })
  }
})

describe("a message to a stopped client that was noted by a clock that is ahead of the server's", () => {
  const kinds: ReadonlyArray<readonly [kind: string, section: Section]> = [
    ["a semaphore", Semaphore.withPermits(Effect.succeed("inside"), semaphore, 1, { waitTime })],
    ["a permit semaphore", PermitSemaphore.withPermit(Effect.succeed("inside"), permits, { waitTime })]
  ]
  for (const [kind, section] of kinds) {
    testLive(`does not keep the permit of ${kind} from others until the clock has caught up`, function* () {
      const server = yield* RedisServer.start()
      const redis = yield* bare(server)
      const stopped = "aaaaaaaa-0000-4000-8000-000000000000"
      const listener = yield* bare(server)
      yield* Effect.promise(() => listener.subscribe(`redisson_sc:{ledger}:${stopped}`))
      const now = yield* microsOf(redis)
      // it has waited for a second, and wants one permit
      yield* Effect.promise(() => redis.zadd(permitPlaces, String(now - 1_000_000), stopped))
      yield* Effect.promise(() => redis.hset("effect_redis_lock_permit_wants:{ledger}", stopped, `1 16 ${now + hour}`))
      const { run } = yield* client(server)
      assert.strictEqual(yield* run(section), "inside")
    })
  }
})
