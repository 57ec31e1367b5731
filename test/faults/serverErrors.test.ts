import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { Lock, type StoreReason } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { type Client, client } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { enter } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected, renewed } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { commandsRun } from "../kit/server/commandsOf.ts"
import { testLive } from "../kit/test.ts"

// whoever is willing to wait outlives most of this: see waiting.test.ts
const section = Lock.withLock(Effect.succeed("done"), "report", { waitTime: 0 })

/** Every way to ask for the lock fails with this reason, and with a message that says what to do and what Redis said. */
const refuses = Effect.fnUntraced(function* ({ run }: Client, reason: StoreReason, ...texts: ReadonlyArray<string>) {
  for (const acquire of [
    section,
    Lock.withLockIfAvailable(Effect.void, "report"),
    Effect.scoped(Lock.scoped("report", { waitTime: 0 })),
    Effect.scoped(Lock.tryScoped("report"))
  ]) {
    const error = storeError(yield* Effect.exit(run(acquire as Effect.Effect<unknown, unknown>)))
    assert.strictEqual(error.reason, reason, error.message)
    assert.strictEqual(error.operation, "lock/acquire")
    assert.isFalse(error.isOutcomeUnknown)
    for (const text of [`Lock "report", lock/acquire: `, ...texts]) assert.include(error.message, text)
  }
})

const works = Effect.fnUntraced(function* ({ run }: Client) {
  assert.strictEqual(yield* run(section), "done")
})

/** Has the server load its data, slowly, until the effect inside is run; `other` can configure it meanwhile. */
const load = Effect.fnUntraced(function* (redis: Redis, other: Redis) {
  yield* Effect.promise(() => other.ping())
  const config = (name: string, value: string) => Effect.promise(() => other.config("SET", name, value))
  yield* config("loading-process-events-interval-bytes", "1024")
  yield* config("key-load-delay", "2000")
  // for a minute, which nobody waits for
  yield* Effect.promise(() => other.call("DEBUG", "POPULATE", "30000"))
  const reloaded = redis.call("DEBUG", "RELOAD")
  yield* eventually(
    "it is loading",
    () => other.ping().catch(String),
    (answer) => answer.includes("LOADING")
  )
  return Effect.andThen(
    config("key-load-delay", "0"),
    Effect.promise(() => reloaded)
  )
})

describe("a server that refuses", { concurrent: true }, () => {
  testLive("A server that is out of memory (OOM) grants nothing, and keeps and releases held locks", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server, { watchdogLeaseTime: "6 seconds" })
    const held = yield* enter(mine, "ledger")
    yield* Effect.promise(() => redis.config("SET", "maxmemory", "1"))
    yield* refuses(mine, "OutOfMemory", "Redis is out of memory (OOM). Raise maxmemory", "(OOM command not allowed")
    assert.deepStrictEqual(yield* Effect.promise(() => redis.keys("*report*")), [])
    yield* renewed(redis, "ledger", 1)
    yield* held.holding.ensureHeld
    yield* held.finish
    assert.strictEqual(yield* Effect.promise(() => redis.exists("ledger")), 0)
    yield* Effect.promise(() => redis.config("SET", "maxmemory", "0"))
    yield* works(mine)
  })

  testLive("On a server that is out of memory (OOM) a holder may enter its lock again", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const outer = Effect.gen(function* () {
      yield* Effect.promise(() => redis.config("SET", "maxmemory", "1"))
      yield* section
      return "outer"
    })
    assert.strictEqual(yield* mine.run(Lock.withLock(outer, "report")), "outer")
    assert.strictEqual(yield* Effect.promise(() => redis.exists("report")), 0)
  })

  testLive("A replica (READONLY) refuses a lock", function* () {
    const { redis, server } = yield* onServer()
    const master = yield* RedisServer.start()
    const mine = yield* client(server)
    yield* Effect.promise(() => redis.replicaof(master.host, master.port))
    yield* refuses(mine, "ReadOnly", "a read-only replica. Connect to the master", "(READONLY You can't write")
    yield* Effect.promise(() => redis.replicaof("NO", "ONE"))
    // the driver looks for the master over a new connection
    yield* connected(mine)
    yield* works(mine)
  })

  testLive("On a server that cannot save (MISCONF) a release fails, too, and says that the work is done", function* () {
    // nobody can write there, not even root
    const { redis, server } = yield* onServer({ args: ["--save", "3600 1", "--dir", "/proc"] })
    const mine = yield* client(server)
    const held = yield* enter(mine, "ledger", { leaseTime: "1 minute" })
    yield* Effect.promise(() => redis.bgsave())
    yield* eventually(
      "saving fails",
      () => redis.info("persistence"),
      (info) => info.includes("rdb_last_bgsave_status:err")
    )
    yield* refuses(mine, "PersistenceFailed", "cannot save to disk (MISCONF). Look at its log", "(MISCONF ")
    yield* held.end
    const error = storeError(yield* held.exit)
    assert.strictEqual(error.reason, "PersistenceFailed")
    assert.include(error.message, `Lock "ledger" (the work is done), release (the lock frees itself`)
    yield* Effect.promise(() => redis.config("SET", "stop-writes-on-bgsave-error", "no"))
    yield* Effect.promise(() => redis.del("ledger"))
    yield* works(mine)
  })

  testLive(
    "A server with too few replicas (NOREPLICAS) refuses a lock, and grants it once they are back",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server)
      yield* Effect.promise(() => redis.config("SET", "min-replicas-to-write", "1"))
      yield* refuses(mine, "NotEnoughReplicas", "too few replicas are connected (NOREPLICAS)", "(NOREPLICAS Not enough")
      assert.deepStrictEqual(yield* Effect.promise(() => redis.keys("*")), [])
      assert.isTrue(storeError(yield* Effect.exit(mine.run(section))).isTransient)
      yield* Effect.promise(() => redis.config("SET", "min-replicas-to-write", "0"))
      yield* works(mine)
    }
  )

  testLive("A release at a server with too few replicas (NOREPLICAS) is repeated until they are back", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server, { watchdogLeaseTime: "5 minutes", releaseTimeout: "1 minute" })
    const held = yield* enter(mine, "ledger")
    yield* Effect.promise(() => redis.config("SET", "min-replicas-to-write", "1"))
    yield* Effect.promise(() => redis.config("RESETSTAT"))
    yield* held.end
    yield* eventually("three attempts have failed", commandsRun(redis, "evalsha"), (attempts) => attempts >= 3)
    assert.strictEqual(yield* Effect.promise(() => redis.exists("ledger")), 1)
    yield* Effect.promise(() => redis.config("SET", "min-replicas-to-write", "0"))
    assert.strictEqual(yield* Effect.flatten(held.exit), "done")
    assert.strictEqual(yield* Effect.promise(() => redis.exists("ledger")), 0)
  })

  testLive("A server that is loading (LOADING) grants a lock to a caller that retries", function* () {
    const { redis, server } = yield* onServer({ args: ["--enable-debug-command", "yes"] })
    const mine = yield* client(server)
    const other = yield* bare(server)
    const endLoading = yield* load(redis, other)
    yield* refuses(mine, "Loading", "is still loading its data (LOADING)", "(LOADING ")
    const patient = Effect.retry(section, {
      while: (error) => error._tag === "LockStoreError" && error.isTransient,
      schedule: Schedule.spaced(50)
    })
    const trying = yield* Effect.forkScoped(mine.run(patient), { startImmediately: true })
    assert.isUndefined(trying.pollUnsafe())
    yield* endLoading
    assert.strictEqual(yield* soon("the lock is acquired", Fiber.join(trying)), "done")
    yield* Effect.promise(() => other.flushall())
  })

  testLive("A layer that is built while the server is loading waits as long as the server answers", function* () {
    const { redis, server } = yield* onServer({ args: ["--enable-debug-command", "yes"] })
    const other = yield* bare(server)
    const endLoading = yield* load(redis, other)
    let asked = 0
    /** By others than this client. */
    const questions = async () => {
      asked++
      return Number(/cmdstat_info:calls=(\d+)/.exec(await other.info("commandstats"))?.[1] ?? 0) - asked
    }
    const before = yield* Effect.promise(questions)
    // asks every 300 ms, and takes a handshake for lost when nothing comes back for two seconds
    const building = yield* Effect.forkScoped(
      client(server, { commandTimeout: 1000, ioredis: { maxLoadingRetryTime: 300 } }),
      { startImmediately: true }
    )
    yield* eventually("it was told eight times that the server is loading", questions, (now) => now >= before + 8)
    assert.isUndefined(building.pollUnsafe())
    yield* endLoading
    const mine = yield* soon("the layer is built", Fiber.join(building))
    assert.strictEqual(yield* mine.run(section), "done")
    yield* Effect.promise(() => other.flushall())
  })

  testLive("A release waits for a script that runs for too long (BUSY)", function* () {
    const { redis, server } = yield* onServer({ args: ["--lua-time-limit", "50"] })
    const mine = yield* client(server, { watchdogLeaseTime: "5 minutes", releaseTimeout: "1 minute" })
    const held = yield* enter(mine, "ledger")
    const other = yield* bare(server)
    const busy = other.eval("while true do end", 0).catch(String)
    yield* eventually(
      "it is busy",
      () => redis.ping().catch(String),
      (answer) => answer.includes("BUSY")
    )
    yield* refuses(mine, "Busy", "is busy with another script (BUSY). Find the slow script", "(BUSY ")
    yield* held.end
    // long enough for several failed attempts
    yield* Effect.sleep(300)
    yield* Effect.promise(() => redis.script("KILL"))
    assert.include(yield* Effect.promise(() => busy), "Script killed")
    assert.strictEqual(yield* Effect.flatten(held.exit), "done")
    yield* works(mine)
  })

  testLive("Nothing is acquired if the token's key has no token (WRONGTYPE)", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const key = "redisson_lock_token:{report}"
    yield* Effect.promise(() => redis.rpush(key, "a"))
    yield* refuses(mine, "WrongType")
    assert.deepStrictEqual(yield* Effect.promise(() => redis.keys("*")), [key])
    assert.deepStrictEqual(yield* Effect.promise(() => redis.lrange(key, 0, -1)), ["a"])
  })
})
