/**
 * Many lock clients over one driver.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, TcpProxy } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { Cluster, Redis } from "ioredis"
import { eventually, until } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { applicationInUse } from "../kit/server/cluster.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { testLive } from "../kit/test.ts"

const lockClient = Layer.fresh(RedisLock.layerFromStore().pipe(Layer.provide(Layer.fresh(LockStore.layerRedis))))

/** What Node.js warns of until the scope closes. */
const warningsOfNode = Effect.gen(function* () {
  const warnings: Array<string> = []
  const onWarning = ({ message }: Error) => void warnings.push(message)
  process.on("warning", onWarning)
  yield* Effect.addFinalizer(() => Effect.sync(() => process.off("warning", onWarning)))
  return warnings
})

testLive("Many clients that share a driver do not make Node.js warn of too many listeners", function* () {
  const warnings = yield* warningsOfNode
  const redis = yield* bare({ url: redisUrl })
  const driver = yield* Layer.build(IoRedis.fromClient(redis))
  for (let i = 0; i < 12; i++) yield* Effect.provideContext(Layer.build(lockClient), driver)
  // what the clients have forked has begun, and Node.js has told of it
  yield* Effect.promise(() => redis.ping())
  assert.deepStrictEqual(warnings, [])
})

const listenersOf = (client: Redis | Cluster) => client.eventNames().map((name) => [name, client.listenerCount(name)])

/** Many drivers over one client leave no warning, and the client as it was. */
const leavesAsItWas = Effect.fnUntraced(function* (client: Redis | Cluster) {
  const warnings = yield* warningsOfNode
  const before = { listeners: listenersOf(client), most: client.getMaxListeners() }
  yield* Effect.gen(function* () {
    for (let i = 0; i < 12; i++) yield* Layer.build(Layer.fresh(IoRedis.fromClient(client)))
    yield* Effect.promise(() => client.ping())
  }).pipe(Effect.scoped)
  assert.deepStrictEqual(warnings, [])
  assert.deepStrictEqual({ listeners: listenersOf(client), most: client.getMaxListeners() }, before)
})

testLive(
  "Many drivers over one client of the application do not make Node.js warn either, and leave the client as it was",
  function* () {
    yield* leavesAsItWas(yield* bare({ url: redisUrl }))
  }
)

testLive(
  "Many drivers over a client or a Cluster that is about to connect do not make Node.js warn either",
  function* () {
    const { urls } = yield* RedisCluster.start()
    const warnings = yield* warningsOfNode
    for (const client of [new Redis(redisUrl, { lazyConnect: true }), new Cluster([...urls], { lazyConnect: true })]) {
      yield* Effect.addFinalizer(() => Effect.sync(() => client.disconnect()))
      const most = client.getMaxListeners()
      const build = Layer.build(Layer.fresh(IoRedis.fromClient(client)))
      yield* Effect.scoped(
        Effect.all(
          Array.from({ length: 12 }, () => build),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.promise(() => client.ping())
      assert.strictEqual(client.getMaxListeners(), most)
    }
    assert.deepStrictEqual(warnings, [])
  }
)

testLive("A driver that is given up while a client or a Cluster is connecting leaves it as it was", function* () {
  const proxy = yield* TcpProxy.make({ target: redisUrl })
  yield* proxy.stall
  const clients = [new Redis(proxy.url), new Cluster([proxy.url], { slotsRefreshTimeout: 300_000 })]
  yield* Effect.addFinalizer(() => Effect.sync(() => clients.forEach((client) => client.disconnect())))
  for (const client of clients) client.on("error", () => {})
  yield* eventually("they are connecting", proxy.connections, (connections) => connections >= clients.length)
  for (const client of clients) {
    const before = listenersOf(client)
    const count = client.listenerCount("close")
    const building = yield* Effect.forkScoped(Effect.scoped(Layer.build(IoRedis.fromClient(client))))
    yield* until("it is waited for", () => client.listenerCount("close") > count)
    yield* Fiber.interrupt(building)
    assert.deepStrictEqual(listenersOf(client), before)
  }
})

testLive("Many drivers over one Cluster of the application do not make Node.js warn either", function* () {
  yield* leavesAsItWas(yield* applicationInUse(yield* RedisCluster.start()))
})
