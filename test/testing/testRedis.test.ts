import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer, TestRedis } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Result } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"

/** Changes the environment for as long as the scope is open. */
const withEnvironment = (changes: Record<string, string | undefined>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = Object.fromEntries(Object.keys(changes).map((name) => [name, process.env[name]]))
      setEnvironment(changes)
      return before
    }),
    (before) => Effect.sync(() => setEnvironment(before))
  )

const setEnvironment = (values: Record<string, string | undefined>): void => {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
}

const locks = (url: string) => Layer.provide(RedisLock.layer(), IoRedis.layer({ url }))

// whether an engine answers is only known by asking
const engine = await Effect.runPromise(Effect.result(Effect.scoped(TestRedis.container({ quiet: true }))))
if (Result.isFailure(engine)) console.log(`The container tests are skipped: ${engine.failure.message}`)

describe("the search for a Redis", () => {
  it.live("The search for a Redis takes REDIS_URL first", () =>
    Effect.gen(function* () {
      const server = yield* RedisServer.start()
      yield* withEnvironment({ REDIS_URL: server.url })
      const redis = Option.getOrThrow(yield* TestRedis.findWith({ quiet: true }))
      assert.deepInclude(redis, { source: "REDIS_URL", url: server.url })
    }).pipe(Effect.scoped)
  )

  it.live("The search for a Redis does not skip a REDIS_URL that does not answer", () =>
    Effect.gen(function* () {
      yield* withEnvironment({ REDIS_URL: "redis://127.0.0.1:1" })
      const error = yield* Effect.flip(TestRedis.findWith({ quiet: true }))
      assert.include(error.message, "REDIS_URL")
    }).pipe(Effect.scoped)
  )

  it.live("The search for a Redis runs a server from the PATH, which ends with the scope", () =>
    Effect.gen(function* () {
      yield* withEnvironment({ REDIS_URL: undefined })
      const url = yield* Effect.gen(function* () {
        const redis = Option.getOrThrow(yield* TestRedis.findWith({ quiet: true }))
        assert.strictEqual(redis.source, "local server")
        yield* Effect.provide(Lock.withLock(Effect.void, "a"), locks(redis.url))
        return redis.url
      }).pipe(Effect.scoped)
      const error = yield* Effect.flip(Effect.provide(Lock.isLocked("a"), locks(url)))
      assert.strictEqual((error as { reason: string }).reason, "ConnectionRefused")
    }).pipe(Effect.scoped)
  )

  it.live("The search for a Redis names the three ways if it finds none", () =>
    Effect.gen(function* () {
      yield* withEnvironment({
        REDIS_URL: undefined,
        PATH: "/nonexistent",
        DOCKER_HOST: "tcp://127.0.0.1:1",
        HOME: "/nonexistent"
      })
      const found = yield* Effect.result(TestRedis.findWith({ quiet: true }))
      // an engine on its usual socket is found whatever DOCKER_HOST says
      if (Result.isSuccess(engine)) return
      assert.deepStrictEqual(found, Result.succeed(Option.none()))
      const error = yield* Effect.flip(Effect.provide(TestRedis.TestRedis, Layer.fresh(TestRedis.layer)))
      for (const way of ["REDIS_URL", "redis-server", "valkey-server", "Docker"]) assert.include(error.message, way)
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(Result.isFailure(engine))("The search for a Redis runs a container, in which locks work", () =>
    Effect.gen(function* () {
      yield* withEnvironment({ REDIS_URL: undefined, PATH: "/nonexistent" })
      const redis = Option.getOrThrow(yield* TestRedis.findWith({ quiet: true }))
      assert.strictEqual(redis.source, "container")
      yield* Effect.gen(function* () {
        assert.isTrue(yield* Lock.withLock(Lock.isLocked("a"), "a"))
        assert.isFalse(yield* Lock.isLocked("a"))
      }).pipe(Effect.provide(locks(redis.url)))
    }).pipe(Effect.scoped)
  )
})
