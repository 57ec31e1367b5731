/**
 * The two paths through ioredis: that the one is taken that should be, and that the fast one is proven first.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as core from "effect-redis-lock"
import { Redis } from "ioredis"
import { vi } from "vitest"
import { hasFastPath, notingPaths, pathLog, pathOfThisRun } from "../kit/commandPath.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

const VARIABLE = "REDIS_LOCK_FAST_PATH"

/** Takes a lock over the driver; gives the paths that its scripts have taken, and what the log says of them. */
const taken = <E>(driver: Layer.Layer<core.RedisDriver.RedisDriver, E>, { Lock, RedisLock } = core) =>
  Effect.gen(function* () {
    const log = pathLog()
    const paths = yield* notingPaths
    const locks = Layer.provide(RedisLock.layer(), Layer.fresh(driver))
    yield* Lock.withLock(Effect.void, `path:${crypto.randomUUID()}`).pipe(
      Effect.provide(locks),
      Effect.provide(log.layer)
    )
    return { paths: [...paths], lines: log.lines }
  }).pipe(Effect.scoped)

/** Sets the environment variable until the scope closes. */
const environment = (value: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = process.env[VARIABLE]
      process.env[VARIABLE] = value
      return before
    }),
    (before) =>
      Effect.sync(() => {
        if (before === undefined) delete process.env[VARIABLE]
        else process.env[VARIABLE] = before
      })
  )

const fromClient = (options?: IoRedis.FromClientOptions) =>
  Layer.unwrap(Effect.map(bare({ url: redisUrl }), (redis) => IoRedis.fromClient(redis, options)))

testLive("the scripts of this whole run take the path that its environment asks for", function* () {
  const paths = yield* notingPaths
  const locks = Layer.provide(core.RedisLock.layer(), IoRedis.layer({ url: redisUrl }))
  yield* Effect.provide(core.Lock.withLock(Effect.void, `path:${crypto.randomUUID()}`), locks)
  assert.deepStrictEqual([...paths], [pathOfThisRun])
})

describe("the plain path through ioredis", () => {
  testLive("The plain path through ioredis is taken if fastPath is false, and the log says so", function* () {
    for (const driver of [IoRedis.layer({ url: redisUrl, fastPath: false }), fromClient({ fastPath: false })]) {
      assert.deepStrictEqual(yield* taken(driver), {
        paths: ["plain"],
        lines: ["Scripts take the plain path through ioredis: it was asked for."]
      })
    }
  })

  testLive("The plain path through ioredis is taken on a cluster if fastPath is false", function* () {
    const { urls } = yield* RedisCluster.start()
    const { paths } = yield* taken(IoRedis.layerCluster({ nodes: urls, fastPath: false }))
    assert.deepStrictEqual(paths, ["plain"])
  })

  testLive(
    "The plain path through ioredis is taken if the environment variable REDIS_LOCK_FAST_PATH is false",
    function* () {
      yield* environment("false")
      const { paths } = yield* taken(IoRedis.layer({ url: redisUrl }))
      assert.deepStrictEqual(paths, ["plain"])
    }
  )

  testLive(
    "The path through ioredis is not guessed from an environment variable that is neither true nor false",
    function* () {
      yield* environment("perhaps")
      const error = yield* Effect.flip(taken(IoRedis.layer({ url: redisUrl })))
      assert.deepInclude(error, { _tag: "InvalidLockOptions", option: VARIABLE })
    }
  )
})

describe.runIf(hasFastPath)("the fast path through ioredis", () => {
  testLive("The fast path through ioredis is taken by every layer if nothing is said of it", function* () {
    yield* environment("")
    for (const driver of [IoRedis.layer({ url: redisUrl }), fromClient()]) {
      assert.deepStrictEqual(yield* taken(driver), {
        paths: ["fast"],
        lines: ["Scripts take the fast path through ioredis."]
      })
    }
  })

  testLive("The fast path through ioredis is taken if fastPath is true, whatever the environment says", function* () {
    yield* environment("false")
    const { paths } = yield* taken(IoRedis.layer({ url: redisUrl, fastPath: true }))
    assert.deepStrictEqual(paths, ["fast"])
  })

  testLive(
    "The fast path is not taken over an ioredis that does not write a command at once, and the log names what is missing",
    function* () {
      const { sendCommand } = Redis.prototype
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          Redis.prototype.sendCommand = async function (this: Redis, command, stream) {
            await undefined
            return sendCommand.call(this, command, stream)
          }
          // another process, so to say: what is missing is found out once
          vi.resetModules()
        }),
        () =>
          Effect.sync(() => {
            Redis.prototype.sendCommand = sendCommand
            vi.resetModules()
          })
      )
      const fresh = yield* Effect.promise(() => import("@effect-redis-lock/ioredis"))
      const driver = fresh.IoRedis.layer({ url: redisUrl, fastPath: true })
      const { lines, paths } = yield* taken(driver, yield* Effect.promise(() => import("effect-redis-lock")))
      assert.deepStrictEqual(paths, ["plain"])
      assert.deepStrictEqual(lines, [
        "Scripts take the plain path through ioredis: ioredis lacks Redis.sendCommand, which writes what " +
          "Command.toWritable gives, at once."
      ])
    }
  )
})
