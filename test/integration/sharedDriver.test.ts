/**
 * Many lock clients over one driver.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { bare } from "../kit/server/bareRedis.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"

const lockClient = Layer.fresh(RedisLock.layerFromStore().pipe(Layer.provide(Layer.fresh(LockStore.layerRedis))))

it.live("Many clients that share a driver do not make Node.js warn of too many listeners", () =>
  Effect.gen(function* () {
    const warnings: Array<string> = []
    const onWarning = ({ message }: Error) => void warnings.push(message)
    process.on("warning", onWarning)
    yield* Effect.addFinalizer(() => Effect.sync(() => process.off("warning", onWarning)))
    const redis = yield* bare({ url: redisUrl })
    const driver = yield* Layer.build(IoRedis.fromClient(redis))
    for (let i = 0; i < 12; i++) yield* Effect.provideContext(Layer.build(lockClient), driver)
    // what the clients have forked has begun, and Node.js has told of it
    yield* Effect.promise(() => redis.ping())
    assert.deepStrictEqual(warnings, [])
  }).pipe(Effect.scoped)
)
