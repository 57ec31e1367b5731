import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Layer, Option } from "effect"
import { Lock, LockStore, RedisLock } from "effect-redis-lock"

const memory = <E>(client: Layer.Layer<RedisLock.RedisLock, E, LockStore.LockStore>) =>
  Layer.provide(client, LockStore.layerMemory)

const lease = Effect.map(
  Lock.withLock(Lock.remainingTime("a"), "a"),
  Option.match({ onNone: () => 0, onSome: Duration.toMillis })
)

it.effect("The watchdog's lease is 30 seconds by default", () =>
  Effect.gen(function* () {
    assert.strictEqual(yield* Effect.provide(lease, RedisLock.layerMemory), 30_000)
    assert.strictEqual(
      yield* Effect.provide(lease, memory(RedisLock.layerFromStore({ watchdogLeaseTime: 5000 }))),
      5000
    )
  })
)

it.effect("Bad settings fail the layer, and the error names the option", () =>
  Effect.gen(function* () {
    const bad: ReadonlyArray<RedisLock.RedisLockOptions> = [
      { watchdogLeaseTime: 0 },
      { watchdogLeaseTime: "Infinity" },
      { fallbackInterval: -1 },
      { releaseTimeout: Number.NaN },
      { subscriptionIdleTime: 0 },
      { clockDriftFactor: 0.5 },
      { clockDriftFactor: Number.NaN }
    ]
    for (const options of bad) {
      const error = yield* Effect.flip(Effect.provide(lease, memory(RedisLock.layerFromStore(options))))
      assert.strictEqual(error._tag, "InvalidLockOptions")
      assert.include(error.message, Object.keys(options)[0]!)
    }
  })
)

it.effect("Bad timeouts fail the driver's layer before it connects", () =>
  Effect.gen(function* () {
    for (const options of [{ commandTimeout: 0 }, { commandTimeout: Number.NaN }, { connectTimeout: -1 }]) {
      const error = yield* Effect.flip(Layer.build(IoRedis.layer({ url: "redis://127.0.0.1:1", ...options })))
      assert.strictEqual(error._tag, "InvalidLockOptions")
    }
    const error = yield* Effect.flip(Layer.build(IoRedis.layer({ url: "redis://127.0.0.1:1" })))
    assert.strictEqual(error._tag, "RedisDriverError")
  })
)

it.effect("Settings can come from the environment", () =>
  Effect.gen(function* () {
    const settings = yield* Effect.provide(
      RedisLock.settings,
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: {
            REDIS_LOCK_WATCHDOG_LEASE_TIME: "12 seconds",
            REDIS_LOCK_FALLBACK_INTERVAL: "2 seconds",
            REDIS_LOCK_CLOCK_DRIFT_FACTOR: "0.02",
            REDIS_LOCK_KEY_PREFIX: "app:"
          }
        })
      )
    )
    assert.deepStrictEqual(settings.keyPrefix, "app:")
    assert.strictEqual(settings.clockDriftFactor, 0.02)
    assert.strictEqual(yield* Effect.provide(lease, memory(RedisLock.layerFromStore(settings))), 12_000)
  })
)
