/**
 * The cluster's `RunnerStorage` on a server of its own: what it sends, what it leaves behind, and what it does when the server, the network
 * or its own process fails.
 */
import { fakeDriver } from "../kit/fakeDriver.ts"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import type { RunnerStorage } from "effect/cluster"
import { InvalidLockOptions, LockStoreError, RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eventually, until } from "../kit/eventually.ts"
import { bare, reconnectsAtOnce } from "../kit/server/bareRedis.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { addressOf, again, idsOf, runnerOf, shardsUpTo, storageOver, type StorageOptions } from "./storages.ts"
import { testLive } from "../kit/test.ts"

type Storage = RunnerStorage.RunnerStorage["Service"]

const over = ({ url }: { readonly url: string }) =>
  IoRedis.layer({ url, commandTimeout: "30 seconds", ioredis: reconnectsAtOnce })

const storageServer = Effect.fnUntraced(function* () {
  const server = yield* RedisServer.start()
  return {
    server,
    redis: yield* bare(server),
    process: (options?: StorageOptions) => storageOver(over(server), options)
  }
})

/** How often scripts were run, and what else this server was asked. */
const commandCounts = (redis: Redis) =>
  Effect.map(
    Effect.promise(() => redis.info("commandstats")),
    (text) =>
      Object.fromEntries(
        Array.from(text.matchAll(/^cmdstat_([^:|]+)[^:]*:calls=(\d+)/gm), ([, name, calls]) => [name!, Number(calls)])
      )
  )

describe("what the runner storage sends and leaves behind", () => {
  testLive("300 shards are acquired, refreshed and released with one command each", function* () {
    const { process, redis } = yield* storageServer()
    const storage = yield* process()
    const shards = shardsUpTo(300)
    // tells the server's clock, and its scripts
    yield* storage.register(runnerOf(1), true)
    yield* storage.acquire(addressOf(1), shards)
    yield* storage.refresh(addressOf(1), shards)
    yield* storage.release(addressOf(1), shards[0]!)
    yield* storage.releaseAll(addressOf(1))
    for (const command of [
      storage.acquire(addressOf(1), shards),
      storage.refresh(addressOf(1), shards),
      storage.release(addressOf(1), shards[0]!),
      storage.releaseAll(addressOf(1))
    ]) {
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* command
      const counts = yield* commandCounts(redis)
      assert.deepInclude(counts, { evalsha: 1 })
      assert.notProperty(counts, "eval")
    }
  })

  testLive("Its keys carry one hash tag, and expire when no runner needs them any more", function* () {
    const { process, redis } = yield* storageServer()
    const lasting = yield* process({ prefix: "orders" })
    yield* lasting.register(runnerOf(1), true)
    yield* lasting.acquire(addressOf(1), shardsUpTo(3))
    const keys = yield* Effect.promise(() => redis.keys("*"))
    assert.deepStrictEqual(keys.toSorted(), ["{orders}:runners", "{orders}:shards"])
    yield* Effect.promise(() => redis.flushall())
    const brief = yield* process({ lease: "500 millis", retention: 500, prefix: "orders" })
    yield* again(brief.register(runnerOf(1), true))
    yield* again(brief.acquire(addressOf(1), shardsUpTo(3)))
    yield* eventually(
      "nothing is left",
      () => redis.dbsize(),
      (count) => count === 0
    )
  })

  testLive(
    "A runner with a short lease does not make the keys expire before the leases of others are over",
    function* () {
      const { process, redis } = yield* storageServer()
      const [long, short] = [yield* process(), yield* process({ lease: "1 second" })]
      yield* long.acquire(addressOf(1), shardsUpTo(1))
      yield* again(short.acquire(addressOf(2), shardsUpTo(2)))
      assert.isAbove(yield* Effect.promise(() => redis.pttl("{effect_cluster}:shards")), 10_000)
    }
  )

  testLive("Options and durations out of range are refused before anything is sent", function* () {
    const problemOf = (options: StorageOptions) =>
      Effect.map(
        Effect.flip(Effect.scoped(storageOver(fakeDriver({ eval: () => Effect.die("sent") }), options))),
        (error) => {
          assert.instanceOf(error, InvalidLockOptions)
          return error.option
        }
      )
    for (const prefix of ["", "a{b", "a}b", "\0"]) assert.strictEqual(yield* problemOf({ prefix }), "prefix")
    assert.strictEqual(yield* problemOf({ lease: 0 }), "shardLockExpiration")
    assert.strictEqual(yield* problemOf({ lease: "Infinity" }), "shardLockExpiration")
  })
})

describe("permissions", () => {
  testLive("A Redis user with the documented permissions, and no others, serves all operations", function* () {
    const { redis, server } = yield* storageServer()
    const page = readFileSync(new URL("../../docs/cluster.md", import.meta.url), "utf8")
    const [, rules] = /^ACL SETUSER cluster (.*(?:\n {2}.*)*)/m.exec(page)!
    // Redis before 7.2 does not know that subcommand
    const known = rules!.split(/\s+/).filter((rule) => rule !== "+client|setinfo")
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "cluster", ...known))
    const url = server.url.replace("://", "://cluster:secret@")
    const storage = yield* storageOver(IoRedis.layer({ url }))
    assert.strictEqual(yield* storage.register(runnerOf(1), true), 1)
    assert.strictEqual(yield* storage.register(runnerOf(2), true), 2)
    yield* storage.setRunnerHealth(addressOf(1), false)
    assert.strictEqual((yield* storage.getRunners).length, 2)
    const shards = shardsUpTo(3)
    assert.deepStrictEqual(idsOf(yield* storage.acquire(addressOf(1), shards)), [1, 2, 3])
    assert.deepStrictEqual(idsOf(yield* storage.refresh(addressOf(1), shards)), [1, 2, 3])
    yield* storage.release(addressOf(1), shards[0]!)
    yield* storage.releaseAll(addressOf(1))
    yield* storage.unregister(addressOf(1))
    assert.strictEqual(yield* storage.register(runnerOf(3), true), 1)
    const denied = (yield* Effect.promise(() => redis.call("ACL", "LOG"))) as ReadonlyArray<ReadonlyArray<unknown>>
    const objects = denied.map((entry) => String(entry[entry.indexOf("object") + 1]))
    assert.deepStrictEqual(
      objects.filter((object) => object !== "client|setinfo"),
      []
    )
  })
})

describe("machine ids that run out", () => {
  testLive(
    "When all machine ids are in use a runner gets that of the one that has been silent the longest, and fails where none is silent",
    function* () {
      const { process, redis } = yield* storageServer()
      const brief = yield* process({ lease: "1 second" })
      const lasting = yield* process()
      yield* again(brief.register(runnerOf(1), true))
      yield* eventually("the first runner counts as dead", brief.getRunners, (runners) => runners.length === 0)
      for (let port = 2; port <= 1024; port++) yield* lasting.register(runnerOf(port), true)
      assert.strictEqual(yield* Effect.promise(() => redis.hlen("{effect_cluster}:runners")), 1024)
      assert.strictEqual(yield* lasting.register(runnerOf(2000), true), 1)
      const error = yield* Effect.flip(lasting.register(runnerOf(2001), true))
      assert.strictEqual(error._tag, "PersistenceError")
      assert.match(String(error.cause), /all 1024 machine ids are in use/)
    }
  )
})

describe("a process that was stopped", () => {
  testLive("A reply that is read after the lease is over grants and confirms nothing", function* () {
    const { server } = yield* storageServer()
    const resumed = yield* Deferred.make<void>()
    let isStopped = false
    const driver = Layer.effect(
      RedisDriver.RedisDriver,
      Effect.map(RedisDriver.RedisDriver, (driver) => ({
        ...driver,
        eval: (...args: Parameters<typeof driver.eval>) =>
          Effect.tap(driver.eval(...args), () => (isStopped ? Deferred.await(resumed) : Effect.void))
      }))
    ).pipe(Layer.provide(over(server)))
    const storage = yield* storageOver(driver, { lease: "1 second" })
    const shards = shardsUpTo(3)
    yield* again(storage.acquire(addressOf(1), shards))
    isStopped = true
    const refresh = yield* Effect.forkScoped(storage.refresh(addressOf(1), shards))
    const acquire = yield* Effect.forkScoped(storage.acquire(addressOf(1), shards))
    yield* Effect.sleep(1200)
    yield* Deferred.succeed(resumed, undefined)
    assert.deepStrictEqual(yield* Fiber.join(refresh), [])
    assert.deepStrictEqual(yield* Fiber.join(acquire), [])
  })
})

describe("leases that have ended", () => {
  testLive("That its leases have ended a runner knows without Redis, which may not answer", function* () {
    const { process, redis, server } = yield* storageServer()
    const storage = yield* process({ lease: "1 second" })
    const shards = shardsUpTo(3)
    yield* again(storage.register(runnerOf(1), true))
    yield* again(storage.acquire(addressOf(1), shards))
    yield* server.pause
    yield* Effect.sleep(1000)
    assert.deepStrictEqual(yield* storage.refresh(addressOf(1), shards), [])
    yield* server.resume
    // that it is alive it says beside it
    yield* again(storage.refresh(addressOf(1), shards))
    yield* eventually("it is listed again", storage.getRunners, (runners) => runners.length === 1)
    assert.strictEqual(yield* Effect.promise(() => redis.hlen("{effect_cluster}:runners")), 1)
  })
})

/** A driver that holds back the next command of a script's name: its sender is told that the connection broke. */
const losing = (at: { readonly url: string }) => {
  let loses: string | undefined
  const late: Array<{
    readonly deadline: number
    readonly arrive: Effect.Effect<Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>>
  }> = []
  const driver = Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (driver) => ({
      ...driver,
      commandTimeoutMillis: 500,
      eval: (...args: Parameters<typeof driver.eval>) =>
        Effect.suspend(() => {
          if (args[0].name !== loses) return driver.eval(...args)
          loses = undefined
          late.push({ deadline: Number(args[2].at(-1)), arrive: Effect.exit(driver.eval(...args)) })
          return Effect.fail(RedisDriver.makeError(new Error("ERR held back")))
        })
    }))
  ).pipe(Layer.provide(over(at)))
  return { driver, late, loseNext: (script: string) => void (loses = script) }
}

describe("a command of the runner storage that arrives late", () => {
  const commands: Record<string, (storage: Storage) => Effect.Effect<unknown, unknown>> = {
    register: (storage) => storage.register(runnerOf(1), true),
    unregister: (storage) => storage.unregister(addressOf(1)),
    set_health: (storage) => storage.setRunnerHealth(addressOf(1), false),
    acquire: (storage) => storage.acquire(addressOf(1), shardsUpTo(3)),
    refresh: (storage) => storage.refresh(addressOf(1), shardsUpTo(3)),
    extend: (storage) => storage.refresh(addressOf(1), shardsUpTo(3)),
    release: (storage) => storage.release(addressOf(1), shardsUpTo(1)[0]!),
    release_all: (storage) => storage.releaseAll(addressOf(1))
  }
  for (const [script, command] of Object.entries(commands)) {
    testLive(`A command that arrives after its sender has given up changes nothing: ${script}`, function* () {
      const { redis, server } = yield* storageServer()
      const { driver, late, loseNext } = losing(server)
      const storage = yield* storageOver(driver)
      yield* storage.register(runnerOf(1), true)
      yield* storage.acquire(addressOf(1), shardsUpTo(3))
      if (script === "register") yield* storage.unregister(addressOf(1))
      if (script === "acquire") yield* storage.releaseAll(addressOf(1))
      if (script === "extend") yield* storage.refresh(addressOf(1), shardsUpTo(3))
      loseNext(`runner_storage/${script}`)
      yield* Effect.flip(command(storage))
      const contents = () =>
        Effect.promise(() =>
          Promise.all([redis.hgetall("{effect_cluster}:runners"), redis.hgetall("{effect_cluster}:shards")])
        )
      const before = yield* contents()
      yield* until(
        "the deadline has passed",
        Effect.map(serverTime(redis), (now) => now > late[0]!.deadline)
      )
      const exit = yield* late[0]!.arrive
      const reason = Exit.isFailure(exit) ? exit.cause.reasons[0] : undefined
      assert.isTrue(reason?._tag === "Fail" && String(reason.error.cause).includes("LATE"), JSON.stringify(exit))
      assert.deepStrictEqual(yield* contents(), before)
    })
  }
})

describe("a server that is away", () => {
  testLive("A restart of Redis that keeps its data costs a runner no shard", function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "runner-storage-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const server = yield* RedisServer.start({
      args: ["--appendonly", "yes", "--appendfsync", "always", "--dir", directory]
    })
    const [one, two] = [yield* storageOver(over(server)), yield* storageOver(over(server))]
    const shards = shardsUpTo(300)
    const id = yield* one.register(runnerOf(1), true)
    yield* one.acquire(addressOf(1), shards)
    yield* server.kill
    // it tries again until Redis is back
    const refresh = yield* Effect.forkScoped(one.refresh(addressOf(1), shards), { startImmediately: true })
    yield* server.restart
    assert.deepStrictEqual(idsOf(yield* Fiber.join(refresh)), idsOf(shards))
    assert.deepStrictEqual(yield* two.acquire(addressOf(2), shards), [])
    assert.strictEqual(yield* one.register(runnerOf(1), true), id)
  })

  testLive(
    "While Redis is down its operations fail with a PersistenceError that says why, refreshes after a third of the lease",
    function* () {
      const { process, server } = yield* storageServer()
      const storage = yield* process({ lease: "3 seconds" })
      const shards = shardsUpTo(3)
      yield* storage.acquire(addressOf(1), shards)
      yield* server.kill
      const before = performance.now()
      const error = yield* Effect.flip(storage.refresh(addressOf(1), shards))
      assert.isAtLeast(performance.now() - before, 999)
      assert.strictEqual(error._tag, "PersistenceError")
      assert.instanceOf(error.cause, LockStoreError)
      assert.strictEqual(error.cause.operation, "runner_storage/refresh")
      for (const failing of [
        storage.register(runnerOf(1), true),
        storage.unregister(addressOf(1)),
        storage.getRunners,
        storage.setRunnerHealth(addressOf(1), true),
        storage.release(addressOf(1), shards[0]!),
        storage.releaseAll(addressOf(1))
      ]) {
        assert.strictEqual(
          (yield* Effect.flip(failing as Effect.Effect<unknown, { _tag: string }>))._tag,
          "PersistenceError"
        )
      }
    }
  )
})
