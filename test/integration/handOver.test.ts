/**
 * What a section under a plain lock or a read-write lock costs, and how many others come before it, however many clients contend; and
 * sections that block the event loop as the lock is handed over to them.
 */
import { failure } from "../kit/exits.ts"
import { assert, describe } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Schedule } from "effect"
import { Lock, ReadWriteLock, type RedisLock, SpinLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { type Client, client, clientOver, untoldClient } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { scriptsRun } from "../kit/server/commandsOf.ts"
import { subscribers } from "../kit/server/conditions.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const ask = <A>(answer: () => Promise<A>) => Effect.promise(answer)

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
    for (const count of [2, 24]) {
      testLive(
        `${count} clients need no more than three scripts a section and a few, and each has its turn among the others`,
        function* () {
          const { redis, server } = yield* onServer()
          const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
          const { scripts, waited } = yield* contend(
            redis,
            clients.map((it) => [it, [lock]]),
            10
          )
          assert.isBelow(scripts, 3.6)
          assert.isAtMost(most(waited, "writers"), 2 * count)
        }
      )
    }
  })
}

describe("a read-write lock for which readers and writers contend", () => {
  for (const count of [2, 24]) {
    testLive(
      `${count} clients, half of which write, need no more than three scripts a section and a few, and each has its turn`,
      function* () {
        const { redis, server } = yield* onServer()
        const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
        const { scripts, waited } = yield* contend(
          redis,
          clients.map((it, i) => [it, [i % 2 === 0 ? writeLock : readLock]]),
          10
        )
        assert.isBelow(scripts, 3.6)
        assert.isAtMost(most(waited, "writers"), 2 * count)
        assert.isAtMost(most(waited, "readers"), 2 * count)
      }
    )

    testLive(`in each of ${count} clients a fiber that writes and three that read have their turn`, function* () {
      const { redis, server } = yield* onServer()
      const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
      const { scripts, waited } = yield* contend(
        redis,
        clients.map((it) => [it, [writeLock, readLock, readLock, readLock]]),
        10
      )
      assert.isBelow(scripts, 3.6)
      assert.isAtMost(most(waited, "writers"), 2 * count)
      assert.isAtMost(most(waited, "readers"), 8 * count)
    })
  }
})

const placesTaken = (redis: Redis, count: number) =>
  eventually(
    `${count} have places`,
    // what is beyond tells when writers last asked
    () => redis.zcount("effect_redis_lock_places:{ledger}", "-inf", 4e15),
    (found) => found === count
  )

describe("a spin lock", () => {
  testLive("takes no place as it waits, and is handed over to a client that listens as it is released", function* () {
    const { redis, server } = yield* onServer()
    const spin = SpinLock.make("ledger", { schedule: Schedule.spaced("1 hour") })
    const clients = yield* Effect.forEach(Array.from({ length: 3 }), () => untoldClient(server, patient))
    const [holder, ...others] = clients as [Client, Client, Client]
    const section = yield* sectionUntilTold((body) => holder.run(Lock.withLock(body, spin)))
    const spinner = yield* untoldClient(server, patient)
    yield* spinner.run(Lock.withLockIfAvailable(Effect.void, spin))
    const before = yield* scriptsRun(redis)
    const spins = yield* Effect.forkChild(spinner.run(Lock.withLock(Effect.void, spin)))
    yield* eventually("it has asked", scriptsRun(redis), (count) => count > before)
    const inside = yield* Deferred.make<void>()
    const listening = yield* Effect.forkChild(
      Effect.forEach(
        others,
        ({ run }) =>
          run(Deferred.succeed(inside, undefined).pipe(Effect.andThen(Effect.never), Lock.withLock("ledger"))),
        { concurrency: 2 }
      )
    )
    yield* placesTaken(redis, 2)
    yield* subscribers(redis, "ledger", 2)
    // the spinner once, the others when they come, when they listen and once their place is kept
    yield* eventually("all have asked", scriptsRun(redis), (count) => count >= before + 7)
    yield* ask(() => redis.config("RESETSTAT"))
    yield* section.end
    yield* Deferred.await(inside)
    // the release, and the request of the client that was told
    assert.strictEqual(yield* scriptsRun(redis), 2)
    yield* Fiber.interrupt(spins)
    yield* Fiber.interrupt(listening)
  })
})

// their commands are counted
const silent = { fallbackInterval: "1 hour", label: "" } as const

/** Blocks the event loop, as a section does that computes. */
const block = (millis: number) =>
  Effect.sync(() => {
    const until = performance.now() + millis
    while (performance.now() < until);
  })

describe("a section that blocks the event loop from its first moment, for longer than the lease with which the lock is handed over", () => {
  for (const [title, lock, channel] of [
    ["a plain lock", Lock.make("ledger"), "redisson_lock__channel"],
    ["a write lock", writeLock, "redisson_rwlock"],
    ["a read lock", readLock, "redisson_rwlock"]
  ] as const) {
    testLive(
      `keeps ${title}: its confirmation was on the way, and the reply is read before anybody judges`,
      function* () {
        const { redis, server } = yield* onServer()
        const first = yield* untoldClient(server, silent)
        const holder = yield* sectionUntilTold((body) =>
          first.run(Lock.withLock(body, lock === readLock ? writeLock : lock))
        )
        const waiter = yield* untoldClient(server, silent)
        const judged = yield* Effect.gen(function* () {
          yield* block(2500)
          const holding = yield* Lock.currentHolding(lock)
          return [yield* holding.isHeld, yield* Effect.isSuccess(holding.ensureHeld), yield* holding.remaining] as const
        }).pipe(Lock.withLock(lock), waiter.run, Effect.forkChild)
        yield* placesTaken(redis, 1)
        yield* subscribers(redis, "ledger", 1, channel)
        yield* eventually("it has asked since it listens", scriptsRun(redis), (count) => count >= 5)
        yield* ask(() => redis.config("RESETSTAT"))
        yield* holder.end
        const [isHeld, ensures, remaining] = yield* Fiber.join(judged)
        assert.deepStrictEqual([isHeld, ensures], [true, true])
        assert.isAbove(Duration.toMillis(remaining), 2000)
        // two releases and the confirmation: it was granted by the message alone
        assert.strictEqual(yield* scriptsRun(redis), 3)
      }
    )
  }

  testLive("loses the lock if its confirmation did not arrive", function* () {
    const { proxy, redis, server } = yield* behindProxy()
    const lock = Lock.make("ledger")
    const direct = yield* untoldClient(server, silent)
    const holder = yield* sectionUntilTold((body) => direct.run(Lock.withLock(body, lock)))
    const waiter = yield* clientOver(yield* bare(proxy), { ...silent, subscriptions: server })
    const waiting = yield* Effect.andThen(
      block(2500),
      Effect.flatMap(Lock.currentHolding(lock), (holding) => Effect.exit(holding.ensureHeld))
    ).pipe(Lock.withLock(lock), waiter.run, Effect.exit, Effect.forkChild)
    yield* placesTaken(redis, 1)
    yield* subscribers(redis, "ledger", 1)
    yield* eventually("it has asked since it listens", scriptsRun(redis), (count) => count >= 5)
    // replies come in order: it has also been told that it was denied
    yield* waiter.run(Lock.isLocked("another"))
    yield* proxy.stall
    yield* holder.end
    const exit = yield* Fiber.join(waiting)
    yield* proxy.resume
    const error = failure(exit)
    assert.propertyVal(error, "_tag", "LockLost")
  })
})
