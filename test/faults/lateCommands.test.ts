/**
 * A command lies in a connection that has broken, and reaches the server after its sender has given up and undone it.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster } from "@effect-redis-lock/testing"
import { NodeRedis } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import {
  CountDownLatch,
  FairLock,
  FencedLock,
  Lock,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  RedisLock,
  Semaphore
} from "effect-redis-lock"
import type { Redis } from "ioredis"

import { clientOf, locks, locksOver } from "../kit/clients.ts"
import { eventually, soon, until } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { onServer } from "../kit/server/onServer.ts"
import { queued, queueOf, waitFor, hold } from "./kinds.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { isLasting } from "../kit/server/lastingKeys.ts"
import { onServers } from "./quorumSite.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLiveQuietly, testLive } from "../kit/test.ts"

/** A command may take effect for so long after it was sent. */
const commandTimeoutMillis = 400

/** Nobody gives up a command that a busy machine answers late: what the tests lose fails at once. */
const commandTimeout = "1 minute"

type Args = ReadonlyArray<string | number>

/** A command that was sent, and has not arrived yet. */
interface LateCommand {
  readonly deadline: number
  /** What the server answers when it arrives. */
  readonly arrive: Effect.Effect<Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>>
}

interface Address {
  readonly url: string
}

const overIoRedis = ({ url }: Address): Layer.Layer<RedisDriver.RedisDriver, unknown> =>
  IoRedis.layer({ url, commandTimeout })

const overEffectsRedis = ({ url }: Address): Layer.Layer<RedisDriver.RedisDriver, unknown> =>
  RedisDriver.layerRedisWith({ commandTimeout }).pipe(
    Layer.provide(NodeRedis.layer({ url, disableOfflineQueue: true }))
  )

/** A driver whose connection breaks under the next command of a script's name: the command arrives when told. */
const losing = <E>(over: Layer.Layer<RedisDriver.RedisDriver, E>) => {
  let loses: string | undefined
  let isCut = false
  let staysCut = false
  const late: Array<LateCommand> = []
  const driver = Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (driver) => ({
      ...driver,
      commandTimeoutMillis,
      eval: (script: RedisDriver.RedisScript, keys: ReadonlyArray<string>, args: Args) =>
        Effect.suspend(() => {
          if (isCut) return Effect.fail(RedisDriver.makeError(new Error("The client is offline")))
          if (script.name !== loses) return driver.eval(script, keys, args)
          loses = undefined
          isCut = staysCut
          late.push({ deadline: Number(args.at(-1)), arrive: Effect.exit(driver.eval(script, keys, args)) })
          return Effect.fail(RedisDriver.makeError(new Error("Connection is closed.")))
        })
    }))
  ).pipe(Layer.provide(over))
  return {
    locks: locksOver(driver, { watchdogLeaseTime: "5 minutes" }),
    loseNext: (script: string, options = { staysCut: false }) =>
      Effect.sync(() => {
        loses = script
        staysCut = options.staysCut
      }),
    mend: Effect.sync(() => void (isCut = false)),
    lost: Effect.map(
      eventually(
        "a command is lost",
        () => late.length,
        (count) => count > 0
      ),
      () => late[0]!
    )
  }
}

/** A client over such a driver. */
const clientThatLoses = Effect.fnUntraced(function* (at: Address, over = overIoRedis) {
  const driver = losing(over(at))
  return { ...driver, ...(yield* clientOf(driver.locks)) }
})

/** Waits until a command that was sent until now may no longer take effect. */
const expire = (redis: Redis, { deadline }: LateCommand) =>
  eventually(
    "the deadline of the late command has passed",
    () => Effect.runPromise(serverTime(redis)),
    (now) => now > deadline
  )

const isRefused = (exit: Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>) => {
  const error = Exit.isFailure(exit) ? exit.cause.reasons[0] : undefined
  assert.isTrue(error?._tag === "Fail" && String(error.error.cause).includes("LATE"), JSON.stringify(exit))
}

const { readLock, writeLock } = ReadWriteLock.make("name")
const ordinary = Effect.succeed("in")

/** One acquisition by each script, and a look whether all is free; spin locks and non-reentrant ones are taken by `lock/acquire`. */
const kinds: Record<
  string,
  {
    readonly script: string
    readonly acquire: Effect.Effect<unknown, unknown, RedisLock.RedisLock>
    readonly isFree?: Effect.Effect<boolean, unknown, RedisLock.RedisLock>
  }
> = {
  "a lock": { script: "lock/acquire", acquire: Lock.withLock(ordinary, "name", { waitTime: 0 }) },
  "a fenced lock": {
    script: "fenced_lock/acquire",
    acquire: Lock.withLock(ordinary, FencedLock.make("name"), { waitTime: 0 })
  },
  "a fair lock": {
    script: "fair_lock/acquire",
    acquire: Lock.withLock(ordinary, FairLock.make("name"), { waitTime: 0 })
  },
  "a read lock": { script: "read_lock/acquire", acquire: Lock.withLock(ordinary, readLock, { waitTime: 0 }) },
  "a write lock": { script: "write_lock/acquire", acquire: Lock.withLock(ordinary, writeLock, { waitTime: 0 }) },
  "a lock of several names": {
    script: "multi_lock/acquire",
    acquire: Lock.withLock(ordinary, MultiLock.make([Lock.make("name"), Lock.make("other")]), { waitTime: 0 })
  },
  "permits with ids": {
    script: "permit_semaphore/acquire",
    acquire: PermitSemaphore.withPermits(ordinary, PermitSemaphore.make("name", { permits: 3 }), 2, { waitTime: 0 }),
    isFree: Effect.map(PermitSemaphore.acquiredPermits("name"), (count) => count === 0)
  },
  "anonymous permits": {
    script: "semaphore/acquire",
    acquire: Semaphore.withPermits(ordinary, Semaphore.make("name", { permits: 3 }), 2, { waitTime: 0 }),
    isFree: Effect.map(Semaphore.availablePermits("name"), (count) => count === 3 || count === 0)
  }
}

/** No key of a lock is there; of semaphores, that all permits are free. */
const isFree = (redis: Redis, kind: string) =>
  Effect.promise(async () => {
    const keys = (await redis.keys("*")).filter((key) => !isLasting(key))
    if (kind === "anonymous permits") return keys.every((key) => key === "name")
    return kind === "permits with ids" ? !keys.includes("{name}:timeout") : keys.length === 0
  })

describe("an acquisition that was undone before it arrived", () => {
  for (const [kind, { acquire, script }] of Object.entries(kinds)) {
    testLive(`An acquisition after its rollback is refused once its sender has given up: ${kind}`, function* () {
      const { redis, server } = yield* onServer()
      const client = yield* clientThatLoses(server)
      // its first command tells the server's clock
      yield* client.run(acquire)
      yield* client.loseNext(script)
      const error = storeError(yield* Effect.exit(client.run(acquire)))
      assert.strictEqual(error.reason, "ConnectionLost")
      const late = yield* client.lost
      yield* expire(redis, late)
      isRefused(yield* late.arrive)
      assert.isTrue(yield* isFree(redis, kind), "what arrived late has taken something")
      yield* client.run(acquire)
      yield* Effect.promise(() => redis.del("name"))
    })

    testLive(`An acquisition after its rollback, but in time, is rolled back once more: ${kind}`, function* () {
      const { redis, server } = yield* onServer()
      const client = yield* clientThatLoses(server)
      yield* client.run(acquire)
      yield* client.loseNext(script)
      storeError(yield* Effect.exit(client.run(acquire)))
      const exit = yield* Effect.flatMap(client.lost, ({ arrive }) => arrive)
      // a machine that is very busy may deliver it later than that
      if (Exit.isFailure(exit)) isRefused(exit)
      yield* until("all is free again, long before the lease of five minutes ends", isFree(redis, kind))
      yield* client.run(acquire)
      yield* Effect.promise(() => redis.del("name"))
    })
  }
})

const lock = Lock.withLock(ordinary, "name", { waitTime: 0 })

describe("an acquisition that was undone before it arrived, elsewhere than at one server over ioredis,", () => {
  testLive(
    "An acquisition after its rollback is refused once its sender has given up: over Effect's Redis",
    function* () {
      const { redis, server } = yield* onServer()
      const client = yield* clientThatLoses(server, overEffectsRedis)
      yield* client.run(lock)
      yield* client.loseNext("lock/acquire")
      storeError(yield* Effect.exit(client.run(lock)))
      const late = yield* client.lost
      yield* expire(redis, late)
      isRefused(yield* late.arrive)
      assert.isTrue(yield* isFree(redis, "a lock"))
    }
  )

  for (const when of ["in time", "too late"] as const) {
    testLive(
      `An acquisition that arrives after its rollback leaves no vote behind that it takes ${when} at one member of a quorum`,
      function* () {
        const places = yield* onServers(3)
        const slow = losing(overIoRedis(places[0]!.server))
        const { run } = yield* clientOf(
          RedisLock.layerQuorum(
            [slow.locks, ...places.slice(1).map(({ server }) => locks(server, { watchdogLeaseTime: "5 minutes" }))],
            { memberTimeout: "5 seconds" }
          )
        )
        yield* run(lock)
        yield* slow.loseNext("lock/acquire")
        // the other two are a majority
        assert.strictEqual(yield* run(lock), "in")
        const late = yield* slow.lost
        const { redis } = places[0]!
        if (when === "too late") yield* expire(redis, late)
        const exit = yield* late.arrive
        if (when === "too late" || Exit.isFailure(exit)) isRefused(exit)
        yield* eventually(
          "the member is free, long before the lease of five minutes ends",
          () => redis.exists("name"),
          (count) => count === 0
        )
      }
    )
  }

  testLiveQuietly(
    "An acquisition after its rollback is refused once its sender has given up: on Redis Cluster",
    function* () {
      const cluster = yield* RedisCluster.start()
      const driver = losing(IoRedis.layerCluster({ nodes: cluster.urls, commandTimeout }))
      const { run } = yield* clientOf(driver.locks)
      const redis = yield* bare(yield* cluster.ownerOf(yield* cluster.slotOf("name")))
      yield* run(lock)
      yield* driver.loseNext("lock/acquire")
      storeError(yield* Effect.exit(run(lock)))
      const late = yield* driver.lost
      yield* expire(redis, late)
      isRefused(yield* late.arrive)
      assert.isTrue(yield* isFree(redis, "a lock"))
    }
  )
})

describe("a command that arrives late", () => {
  testLive("A forced release that arrives late frees no lock that another client has taken meanwhile", function* () {
    const { redis, server } = yield* onServer()
    const client = yield* clientThatLoses(server)
    const other = yield* clientThatLoses(server)
    yield* client.run(Lock.withLock(ordinary, "name"))
    yield* client.loseNext("lock/force_release")
    storeError(yield* Effect.exit(client.run(Lock.forceRelease("name"))))
    const late = yield* client.lost
    const holding = yield* hold(other, Lock.make("name"))
    yield* expire(redis, late)
    isRefused(yield* late.arrive)
    assert.strictEqual(yield* Effect.promise(() => redis.exists("name")), 1)
    yield* holding.release
  })

  testLive("A command that counts down a latch or sets permits changes no count if it arrives late", function* () {
    const { redis, server } = yield* onServer()
    const client = yield* clientThatLoses(server)
    yield* client.run(CountDownLatch.trySetCount("latch", 2))
    yield* client.loseNext("latch/count_down")
    storeError(yield* Effect.exit(client.run(CountDownLatch.countDown("latch"))))
    const late = yield* client.lost
    yield* expire(redis, late)
    isRefused(yield* late.arrive)
    assert.strictEqual(yield* client.run(CountDownLatch.count("latch")), 2)
    yield* Effect.promise(() => redis.del("latch"))
  })

  testLive("A refresh of a fair lock that arrives late gives no place to a waiter that has gone", function* () {
    const { redis, server } = yield* onServer()
    const lock = FairLock.make("name")
    const holder = yield* clientThatLoses(server)
    const holding = yield* hold(holder, lock)
    const client = yield* clientThatLoses(server)
    const waiter = yield* Effect.forkScoped(client.run(Lock.withLock(ordinary, lock)))
    yield* queued(redis, "name", 1)
    yield* client.loseNext("fair_lock/refresh")
    const late = yield* client.lost
    yield* soon("the waiter goes", Fiber.interrupt(waiter))
    yield* expire(redis, late)
    isRefused(yield* late.arrive)
    assert.strictEqual(yield* Effect.promise(() => redis.exists(queueOf("name"))), 0)
    yield* holding.release
    const next = yield* waitFor(holder, lock)
    yield* (yield* next.entered).release
  })
})
