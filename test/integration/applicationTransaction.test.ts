/**
 * A transaction that the application begins on the client that it shares with the locks: what is sent meanwhile is queued, and runs with
 * EXEC or not at all.
 */
import { NodeRedis } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Stream } from "effect"
import * as EffectRedis from "effect/persistence/Redis"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Lock, RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { clientOver } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { lockKey } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"
import { runnerOf, storageOver } from "../runnerStorage/storages.ts"

const begin = (shared: Redis) => Effect.promise(() => shared.multi({ pipeline: false }))
const commit = (shared: Redis) => Effect.promise(() => shared.exec())

const isQueued = (redis: Redis) =>
  eventually(
    "a script is queued in the transaction",
    async () => String(await redis.client("LIST")),
    (clients) => / multi=[1-9]/.test(clients)
  )

testLive(
  "A lock that is asked for within a transaction of the application is not granted, and is not left held by nobody",
  function* () {
    const { redis, server } = yield* onServer()
    const shared = yield* bare(server)
    const { run } = yield* clientOver(shared)
    yield* run(Lock.withLock(Effect.void, "report"))
    yield* begin(shared)
    const error = storeError(yield* Effect.exit(run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
    assert.strictEqual(error.reason, "ConnectionLost")
    assert.include(error.message, "MULTI")
    const waiter = yield* Effect.forkScoped(
      run(Lock.withLock(Effect.succeed("in"), "report", { waitTime: "1 minute" })),
      { startImmediately: true }
    )
    yield* isQueued(redis)
    yield* commit(shared)
    assert.strictEqual(yield* Fiber.join(waiter), "in")
    yield* lockKey(redis, "report", "gone")
  }
)

testLive("A section whose release comes within a transaction of the application has lost nothing", function* () {
  const { redis, server } = yield* onServer()
  const shared = yield* bare(server)
  const { run } = yield* clientOver(shared)
  const section = yield* Effect.forkScoped(run(Lock.withLock(Effect.as(begin(shared), "done"), "report")), {
    startImmediately: true
  })
  yield* isQueued(redis)
  yield* commit(shared)
  assert.strictEqual(yield* Fiber.join(section), "done")
  yield* lockKey(redis, "report", "gone")
})

testLive(
  "Keys that are looked for within a transaction of the application are not found: the scan fails",
  function* () {
    const { server } = yield* onServer()
    const shared = yield* bare(server)
    const driver = Context.get(yield* Layer.build(IoRedis.fromClient(shared)), RedisDriver.RedisDriver)
    yield* begin(shared)
    const error = yield* Effect.flip(Stream.runHead(driver.scan("*", "hash")))
    assert.strictEqual(error.reason, "ConnectionLost")
    yield* commit(shared)
  }
)

testLive(
  "A scan through Effect's Redis service fails as well within a transaction that the application begins over its connection",
  function* () {
    const { server } = yield* onServer()
    const services = yield* Layer.build(
      Layer.provideMerge(RedisDriver.layerRedis, NodeRedis.layer({ url: server.url }))
    )
    const application = Context.get(services, EffectRedis.Redis)
    yield* application.send("MULTI")
    const error = yield* Effect.flip(Stream.runHead(Context.get(services, RedisDriver.RedisDriver).scan("*", "hash")))
    assert.strictEqual(error.reason, "ConnectionLost")
    yield* application.send("DISCARD")
  }
)

testLive(
  "A runner that asks which others there are within a transaction of the application does not learn that there are none: it fails",
  function* () {
    const { redis, server } = yield* onServer()
    const shared = yield* bare(server)
    const storage = yield* storageOver(IoRedis.fromClient(shared))
    yield* storage.register(runnerOf(1), true)
    yield* begin(shared)
    const { cause } = yield* Effect.flip(storage.getRunners)
    assert.strictEqual(cause, RedisDriver.inTransaction)
    yield* commit(shared)
    assert.deepStrictEqual(yield* storage.getRunners, [[runnerOf(1), true]])
    // it lasts, for the runners' machine ids
    yield* Effect.promise(() => redis.del("{effect_cluster}:runners"))
  }
)
