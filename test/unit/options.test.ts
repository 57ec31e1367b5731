import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Layer, Option } from "effect"
import { InvalidLockOptions, Lock, LockStore, RedisLock } from "effect-redis-lock"
import { Redis, type RedisOptions } from "ioredis"
import { test } from "../kit/test.ts"

const memory = <E>(client: Layer.Layer<RedisLock.RedisLock, E, LockStore.LockStore>) =>
  Layer.provide(client, LockStore.layerMemory)

const lease = Effect.map(
  Lock.withLock(Lock.remainingTime("a"), "a"),
  Option.match({ onNone: () => 0, onSome: Duration.toMillis })
)

test("The watchdog's lease is 30 seconds by default", function* () {
  assert.strictEqual(yield* Effect.provide(lease, RedisLock.layerMemory), 30_000)
  assert.strictEqual(yield* Effect.provide(lease, memory(RedisLock.layerFromStore({ watchdogLeaseTime: 5000 }))), 5000)
})

test("Settings can come from the environment", function* () {
  const settings = yield* Effect.provide(
    RedisLock.settings,
    ConfigProvider.layer(
      ConfigProvider.fromEnv({
        env: {
          REDIS_LOCK_WATCHDOG_LEASE_TIME: "12 seconds",
          REDIS_LOCK_FALLBACK_INTERVAL: "2 seconds",
          REDIS_LOCK_KEY_PREFIX: "app:"
        }
      })
    )
  )
  assert.deepStrictEqual(settings.keyPrefix, "app:")
  assert.strictEqual(yield* Effect.provide(lease, memory(RedisLock.layerFromStore(settings))), 12_000)
})

test("Wrong arguments of the layers over ioredis fail with the argument's name, and never end the process", function* () {
  const anything = (value: unknown) => value as never
  const throwing = {
    toString: () => {
      throw new Error("no text")
    }
  }
  const sentinels = ["redis://127.0.0.1:1"]
  const wrong: ReadonlyArray<readonly [Layer.Layer<never, unknown> | Layer.Layer<any, unknown>, string]> = [
    ...[Symbol("a"), throwing, 7, {}, ""].map(
      (name) => [IoRedis.layerSentinel({ sentinels, name: anything(name) }), "name"] as const
    ),
    ...[undefined, null, "redis://a"].flatMap((options) =>
      [IoRedis.layerSentinel, IoRedis.layerCluster, IoRedis.layerRedisLock].map(
        (make) => [make(anything(options)), "options"] as const
      )
    ),
    [IoRedis.layer(anything(null)), "options"],
    [IoRedis.layerSentinel(anything({})), "sentinels"],
    [IoRedis.layerCluster(anything({ nodes: "redis://a" })), "nodes"],
    [IoRedis.layerCluster(anything({})), "nodes"],
    ...[undefined, null, "redis://a", {}, { options: {} }].map(
      (client) => [IoRedis.fromClient(anything(client)), "client"] as const
    )
  ]
  for (const [layer, option] of wrong) {
    const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
    assert.instanceOf(error, InvalidLockOptions)
    assert.strictEqual(error.option, option)
  }
})

test("A client of the application that reconnects after every error is refused, and one that chooses is not", function* () {
  const over = Effect.fnUntraced(function* (reconnectOnError: NonNullable<RedisOptions["reconnectOnError"]>) {
    const redis = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const redis = new Redis({
          lazyConnect: true,
          host: "127.0.0.1",
          port: 1,
          retryStrategy: () => null,
          reconnectOnError
        })
        redis.on("error", () => {})
        return redis
      }),
      (redis) => Effect.sync(() => redis.disconnect())
    )
    return yield* Effect.flip(Layer.build(IoRedis.fromClient(redis)))
  })
  assert.include((yield* over(() => true)).message, "reconnectOnError")
  assert.include((yield* over(() => 2)).message, "reconnectOnError")
  // a promise, which ioredis ignores
  assert.include((yield* over((() => Promise.resolve(true)) as never)).message, "ECONNREFUSED")
  assert.include((yield* over((error) => error.message.includes("READONLY"))).message, "ECONNREFUSED")
})
