import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe } from "@effect/vitest"
import { Context, Effect, Layer, Scope } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  LockStore,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  SpinLock
} from "effect-redis-lock"
import type { Redis } from "ioredis"
import { type Client, client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { onServer } from "../kit/server/onServer.ts"
import { replicated } from "../kit/server/replicated.ts"
import { type AnyLock, clientsOf, hold, queued, queueOf, timeoutsOf } from "./kinds.ts"
import { clientId, runOperation } from "../kit/storeOperations.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { testLive } from "../kit/test.ts"

const lease = 6000

/** A server that is full from now on. */
const fill = (redis: Redis) => Effect.promise(() => redis.config("SET", "maxmemory", "1"))

/** When the key ends, in milliseconds of the server's clock; 0 where there is no such key. */
const endOf = async (redis: Redis, key: string) => {
  const [time, left] = await Promise.all([redis.time(), redis.pttl(key)])
  return left < 0 ? 0 : Number(time[0]) * 1000 + left
}

/** When the last of these permits ends, in milliseconds of the server's clock; 0 when none is held. */
const endOfPermits = async (redis: Redis, name: string) =>
  Number((await redis.zrange(`{${name}}:timeout`, "-1", "-1", "WITHSCORES"))[1] ?? 0)

/** Waits until this ends several leases from now: it has been renewed at least so often, and never lost. */
const renewedForLong = Effect.fnUntraced(function* (
  redis: Redis,
  what: ReadonlyArray<readonly [what: string, end: () => Promise<number>]>
) {
  const until = (yield* serverTime(redis)) + 2 * lease
  yield* Effect.forEach(
    what,
    ([title, end]) =>
      eventually(
        `${title} is held several leases later`,
        async () => ({ end: await end() }),
        ({ end }) => end === 0 || end > until
      ).pipe(Effect.map((last) => assert.isAbove(last.end, 0, `${title} has ended`))),
    { concurrency: "unbounded" }
  )
})

/** Holds two of a semaphore's three permits for as long as the test's scope is open. */
const holdPermits = ({ run }: Client, name: string) =>
  Effect.flatMap(Effect.scope, (scope) =>
    run(Scope.provide(PermitSemaphore.scoped(PermitSemaphore.make(name, { permits: 3 }), { permits: 2 }), scope))
  )

const ends = (redis: Redis, locks: ReadonlyArray<{ readonly name: string }>) =>
  locks.map(({ name }) => [`lock "${name}"`, () => endOf(redis, name)] as const)

describe("a server whose memory is full (maxmemory, noeviction)", { concurrent: true }, () => {
  testLive(
    "A full server renews locks and permits of every kind, in batches of many names, until they are released",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server, { watchdogLeaseTime: lease })
      const locks: ReadonlyArray<AnyLock> = [
        Lock.make("plain"),
        FairLock.make("fair"),
        FencedLock.make("fenced"),
        SpinLock.make("spin"),
        NonReentrantLock.make("once"),
        ReadWriteLock.make("written").writeLock,
        ...["a", "b", "c"].map((name) => ReadWriteLock.make(`read ${name}`).readLock)
      ]
      const holdings = yield* Effect.forEach(locks, (lock) => hold(mine, lock))
      const permits = yield* Effect.forEach(["x", "y", "z"], (name) => holdPermits(mine, name))
      yield* fill(redis)
      yield* renewedForLong(redis, [
        ...ends(redis, locks),
        ...permits.map(({ name }) => [`a permit of "${name}"`, () => endOfPermits(redis, name)] as const)
      ])
      for (const held of [...holdings, ...permits]) {
        yield* held.ensureHeld
        yield* held.release
      }
      assert.strictEqual(yield* Effect.promise(() => redis.exists(...locks.map(({ name }) => name))), 0)
      for (const { name } of permits) {
        assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "3")
        assert.strictEqual(yield* Effect.promise(() => redis.exists(`{${name}}:timeout`)), 0)
      }
      yield* Effect.promise(() => redis.del("x", "y", "z"))
    }
  )

  testLive(
    "A full server keeps the places of a client that waits for a fair lock, which can be freed by force",
    function* () {
      const { redis, server } = yield* onServer()
      const context = yield* Layer.build(Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: server.url })))
      const store = Context.get(context, LockStore.LockStore)
      const lock = ["fair", "token:{fair}", queueOf("fair"), timeoutsOf("fair"), clientsOf("fair"), "channel:{fair}"]
      const [queue, waiting] = [[lock[0]!, lock[5]!, ...lock.slice(2, 5)], clientId("a")]
      const ask = (owner: string, client: string) =>
        runOperation(store, "fair_lock/acquire", lock, [owner, 60_000, 60_000, 300_000, client, 1000, "PUBLISH", 7])
      yield* ask(`${clientId("b")}:1`, clientId("b"))
      yield* ask(`${waiting}:1`, waiting)
      const aliveUntil = Effect.map(
        Effect.promise(() => redis.zscore(clientsOf("fair"), waiting)),
        Number
      )
      const before = yield* aliveUntil
      yield* fill(redis)
      yield* runOperation(store, "fair_lock/refresh", queue, [
        "PUBLISH",
        300_000,
        waiting,
        60_000,
        1,
        1,
        `${waiting}:1`
      ])
      assert.isAbove(yield* aliveUntil, before + 30_000)
      assert.strictEqual(yield* runOperation(store, "fair_lock/force_release", queue, ["PUBLISH"]), 1)
      assert.deepStrictEqual(yield* queued(redis, "fair", 1), [`${waiting}:1`])
      yield* Effect.promise(() => redis.flushall())
    }
  )

  /** Enters each re-entrant kind of lock again while the server is full. */
  const enterAgain = Effect.fnUntraced(function* (mine: Client, redis: Redis) {
    const locks: ReadonlyArray<AnyLock> = [
      Lock.make("plain"),
      FairLock.make("fair"),
      FencedLock.make("fenced"),
      SpinLock.make("spin"),
      ReadWriteLock.make("written").writeLock,
      ReadWriteLock.make("read").readLock
    ]
    const within = Effect.forEach(locks, (lock) =>
      Effect.gen(function* () {
        yield* Lock.scoped(lock)
        yield* fill(redis)
        const inner = yield* Lock.scoped(lock, { leaseTime: "1 minute" })
        assert.isAbove(yield* Effect.promise(() => redis.pttl(lock.name)), 50_000, lock.name)
        yield* inner.release
        assert.strictEqual(yield* Lock.holdCount(lock), 1, lock.name)
        yield* Effect.promise(() => redis.config("SET", "maxmemory", "0"))
      }).pipe(Effect.scoped)
    )
    yield* mine.run(within)
  })

  testLive("A full server lets a holder enter any re-entrant kind of lock again, and leave it", function* () {
    const { redis, server } = yield* onServer()
    yield* enterAgain(yield* client(server, { watchdogLeaseTime: lease }), redis)
  })

  testLive(
    "A full master lets a holder enter any re-entrant kind of lock again whose grants a replica acknowledges",
    function* () {
      const { redis, server } = (yield* replicated(1)).master
      const acknowledge = { replicas: 1, within: "2 minutes" } as const
      yield* enterAgain(yield* client(server, { watchdogLeaseTime: lease, acknowledge }), redis)
    }
  )

  testLive(
    "A full server has another type at one name: the other readers and permits of the batch are renewed",
    function* () {
      const { redis, server } = yield* onServer()
      const other = yield* bare(server)
      const mine = yield* client(server, { watchdogLeaseTime: lease })
      const readers = ["a", "b", "c"].map((name) => ReadWriteLock.make(name).readLock)
      yield* Effect.forEach(readers, (lock) => hold(mine, lock))
      for (const name of ["x", "y", "z"]) {
        yield* holdPermits(mine, name)
      }
      // the first of their batches
      for (const key of ["a", "{x}:timeout"]) {
        yield* Effect.promise(() => other.multi().del(key).set(key, "text").exec())
      }
      yield* fill(redis)
      yield* renewedForLong(redis, [
        ...ends(redis, readers.slice(1)),
        ...["y", "z"].map((name) => [`a permit of "${name}"`, () => endOfPermits(redis, name)] as const)
      ])
      yield* Effect.promise(() => redis.config("SET", "maxmemory", "0"))
      yield* Effect.promise(() => redis.flushall())
    }
  )
})
