/**
 * A connection that has ended for good: the application has closed its client, or ioredis was told to give up.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { CountDownLatch, FairLock, Lock, Semaphore } from "effect-redis-lock"
import { Cluster, Redis } from "ioredis"
import { clientOf, clientOver, locksOver } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected, subscribers } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const section = Lock.withLock(Effect.succeed("done"), "report")

const replicated = Lock.withLock(Effect.void, "report", {
  waitTime: 0,
  acknowledge: { replicas: 1, within: "1 minute" }
})

const ended = (log: ReturnType<typeof recording>) => log.lines.filter(({ event }) => event === "ended")

for (const how of ["disconnect", "quit"] as const) {
  testLive(
    `Waiters end with Closed when the application closes its client by ${how}(), and work again once it connects it`,
    function* () {
      const { redis, server } = yield* onServer()
      const own = yield* bare(server)
      const log = recording()
      const mine = yield* Effect.provide(clientOver(own), log.layer)
      yield* Effect.promise(() => redis.hset("report", "other", "1"))
      const waiter = yield* Effect.forkScoped(mine.run(section), { startImmediately: true })
      yield* subscribers(redis, "report", 1)
      yield* Effect.promise(async () => own[how]())
      const error = storeError(yield* soon("the waiter ends", Fiber.await(waiter)))
      assert.strictEqual(error.reason, "Closed")
      assert.isFalse(error.isTransient)
      assert.include(error.message, "closed its client")
      const others: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        mine.run(section),
        mine.run(Lock.withLock(Effect.void, FairLock.make("fair"))),
        mine.run(Semaphore.withPermits(Effect.void, Semaphore.make("permits", { permits: 1 }), 1)),
        mine.run(CountDownLatch.await("latch")),
        mine.run(Stream.runDrain(Lock.list()))
      ]
      for (const other of others) {
        assert.strictEqual(storeError(yield* soon("a new request fails", Effect.exit(other))).reason, "Closed")
      }
      assert.strictEqual(ended(log).length, 1)
      assert.include(ended(log)[0]!.message, "connect()")
      yield* Effect.promise(() => own.connect())
      yield* Effect.promise(() => redis.del("report"))
      assert.strictEqual(yield* mine.run(section), "done")
      assert.strictEqual(log.logged().at(-1), "Info restored commands")
    }
  )
}

testLive(
  "Waiters end with Closed when the retryStrategy of ioredis gives up, and the last line of the log says so",
  function* () {
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const log = recording()
    const retryStrategy = (times: number) => (times > 3 ? null : 50)
    const mine = yield* Effect.provide(
      clientOf(locksOver(IoRedis.layer({ url: server.url, ioredis: { retryStrategy } }))),
      log.layer
    )
    yield* Effect.promise(() => redis.hset("report", "other", "1"))
    const waiter = yield* Effect.forkScoped(mine.run(section), { startImmediately: true })
    yield* subscribers(redis, "report", 1)
    yield* server.kill
    const error = storeError(yield* soon("the waiter ends", Fiber.await(waiter)))
    assert.strictEqual(error.reason, "Closed")
    assert.include(error.message, "retryStrategy")
    assert.include(error.message, "ECONNREFUSED")
    assert.deepStrictEqual(
      log.logged().filter((line) => line.endsWith("commands")),
      ["Warn lost commands", "Warn refused commands", "Warn ended commands"]
    )
    assert.include(ended(log)[0]!.message, "retryStrategy")
    assert.strictEqual(storeError(yield* Effect.exit(mine.run(replicated))).reason, "Closed")
  }
)

testLive("Nothing is logged when the layer closes its own connection", function* () {
  const server = yield* RedisServer.start()
  const log = recording()
  const scope = yield* Scope.make()
  const mine = yield* clientOf(locksOver(IoRedis.layer({ url: server.url }))).pipe(
    Effect.provide(log.layer),
    Scope.provide(scope)
  )
  yield* mine.run(section)
  yield* Scope.close(scope, Exit.void)
  const redis = yield* bare(server)
  yield* eventually(
    "the connection is closed",
    async () => (await redis.client("LIST")) as string,
    (clients) => clients.trim().split("\n").length === 1
  )
  assert.deepStrictEqual(log.logged(), [])
})

testLive("A client that is not connected yet is not closed", function* () {
  const server = yield* RedisServer.start()
  const own = yield* Effect.acquireRelease(
    Effect.sync(() => new Redis(server.url, { lazyConnect: true })),
    (redis) => Effect.sync(() => redis.disconnect())
  )
  const mine = yield* clientOver(own)
  assert.strictEqual(yield* mine.run(section), "done")
})

testLive(
  "Commands end with Closed when the application closes its Cluster, and work again once it connects it",
  function* () {
    const { urls } = yield* RedisCluster.start()
    const own = yield* Effect.acquireRelease(
      Effect.sync(() => new Cluster([...urls]).on("error", () => {})),
      (cluster) => Effect.sync(() => cluster.disconnect())
    )
    const log = recording()
    const mine = yield* Effect.provide(clientOf(locksOver(IoRedis.fromClient(own))), log.layer)
    assert.strictEqual(yield* mine.run(section), "done")
    own.disconnect()
    const error = storeError(yield* soon("the waiter ends", Effect.exit(mine.run(section))))
    assert.strictEqual(error.reason, "Closed")
    assert.strictEqual(storeError(yield* Effect.exit(mine.run(replicated))).reason, "Closed")
    assert.strictEqual(ended(log).length, 1)
    yield* Effect.promise(() => own.connect())
    yield* connected(mine)
    assert.strictEqual(yield* soon("the lock is acquired", mine.run(section)), "done")
  }
)
