/**
 * Clients of several servers in one program, however their layers are put together: Effect builds a layer once for a whole graph, and
 * for what is provided below it.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { NodeRedis } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { Lock, LockStore, RedisDriver, RedisLock } from "effect-redis-lock"
import { testLive } from "../kit/test.ts"

class First extends Context.Service<First, RedisLock.RedisLock["Service"]>()("test/First") {}
class Second extends Context.Service<Second, RedisLock.RedisLock["Service"]>()("test/Second") {}

/** The ways to a client of the server at a URL. */
const ways: Record<string, (url: string) => Layer.Layer<RedisLock.RedisLock, unknown>> = {
  "IoRedis.layer": (url) => Layer.provide(RedisLock.layer(), IoRedis.layer({ url })),
  "LockStore.layerRedis": (url) =>
    RedisLock.layerFromStore().pipe(Layer.provide(LockStore.layerRedis), Layer.provide(IoRedis.layer({ url }))),
  "RedisDriver.layerRedis": (url) =>
    RedisLock.layer().pipe(
      Layer.provide(RedisDriver.layerRedis),
      Layer.provide(NodeRedis.layer({ url, disableOfflineQueue: true }))
    )
}

const held = Effect.map(Lock.tryScoped("a"), Option.isSome)

for (const [way, at] of Object.entries(ways)) {
  testLive(`Two clients of one graph of layers are each at its own server, by ${way}`, function* () {
    const [one, two] = yield* Effect.all([RedisServer.start(), RedisServer.start()])
    const live = Layer.merge(
      Layer.provide(Layer.effect(First, RedisLock.RedisLock), at(one.url)),
      Layer.provide(Layer.effect(Second, RedisLock.RedisLock), at(two.url))
    )
    yield* Effect.gen(function* () {
      assert.isTrue(yield* Effect.provideService(held, RedisLock.RedisLock, yield* First))
      assert.isTrue(yield* Effect.provideService(held, RedisLock.RedisLock, yield* Second))
    }).pipe(Effect.provide(live))
  })

  testLive(`A client that is provided below another one is at its own server, by ${way}`, function* () {
    const [one, two] = yield* Effect.all([RedisServer.start(), RedisServer.start()])
    yield* Effect.gen(function* () {
      assert.isTrue(yield* held)
      assert.isTrue(yield* Effect.provide(held, at(two.url)))
    }).pipe(Effect.provide(at(one.url)))
  })

  testLive(`A quorum below another client has its own servers, by ${way}`, function* () {
    const servers = yield* Effect.all([RedisServer.start(), RedisServer.start(), RedisServer.start()])
    const quorum = RedisLock.layerQuorum(servers.map(({ url }) => at(url)))
    yield* Effect.gen(function* () {
      yield* Effect.provide(Lock.withLock(Effect.void, "b"), quorum)
      assert.isTrue(yield* held)
    }).pipe(Effect.provide(at(servers[0]!.url)))
  })
}
