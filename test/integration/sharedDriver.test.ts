/**
 * Many lock clients over one driver.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { bare } from "../kit/server/bareRedis.ts"
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

testLive(
  "Many drivers over one client of the application do not make Node.js warn either, and leave the client as it was",
  function* () {
    const warnings = yield* warningsOfNode
    const redis = yield* bare({ url: redisUrl })
    const listeners = () => redis.eventNames().map((name) => [name, redis.listenerCount(name)])
    const before = { listeners: listeners(), most: redis.getMaxListeners() }
    yield* Effect.gen(function* () {
      for (let i = 0; i < 12; i++) yield* Layer.build(Layer.fresh(IoRedis.fromClient(redis)))
      yield* Effect.promise(() => redis.ping())
    }).pipe(Effect.scoped)
    assert.deepStrictEqual(warnings, [])
    assert.deepStrictEqual({ listeners: listeners(), most: redis.getMaxListeners() }, before)
  }
)
