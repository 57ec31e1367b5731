import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { Redis } from "ioredis"
import { client, clientOver } from "../kit/clients.ts"
import { soon } from "../kit/eventually.ts"
import { failure } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"

const section = Lock.withLock(Effect.succeed("done"), "report")

/** How building a driver fails. */
const connecting = (options: IoRedis.IoRedisOptions) =>
  Effect.map(
    soon("connecting comes to an end", Effect.exit(Effect.scoped(Layer.build(IoRedis.layer(options))))),
    (exit) => {
      const error = failure(exit)
      assert.instanceOf(error, RedisDriver.RedisDriverError)
      return error
    }
  )

/** A port of 127.0.0.1 where nobody listens. */
const closedPort = Effect.scoped(Effect.map(TcpProxy.make({ target: { port: 1 } }), ({ port }) => port))

describe("a server that cannot be reached", () => {
  it.live("The layer fails with ConnectionRefused if nobody listens", () =>
    Effect.gen(function* () {
      const port = yield* closedPort
      const error = yield* connecting({ url: `redis://127.0.0.1:${port}` })
      assert.strictEqual(error.reason, "ConnectionRefused")
      assert.include(error.message, `ECONNREFUSED 127.0.0.1:${port}`)
    })
  )

  it.live("The layer fails with ConnectionRefused if nobody listens, also over an application's own client", () =>
    Effect.gen(function* () {
      const port = yield* closedPort
      for (const lazyConnect of [false, true]) {
        const redis = yield* Effect.acquireRelease(
          Effect.sync(() => new Redis(port, "127.0.0.1", { lazyConnect })),
          (redis) => Effect.sync(() => redis.disconnect())
        )
        const exit = yield* Effect.exit(clientOver(redis))
        assert.strictEqual((failure(exit) as RedisDriver.RedisDriverError).reason, "ConnectionRefused")
      }
    })
  )

  it.live(
    "The layer waits for an application's own client that is still connecting",
    onServer(({ server }) =>
      Effect.gen(function* () {
        const redis = yield* bare(server)
        assert.strictEqual(redis.status, "connecting")
        const { run } = yield* clientOver(redis)
        assert.strictEqual(yield* run(section), "done")
      })
    )
  )

  it.live("The layer fails with NotAuthenticated if the server wants other credentials", () =>
    Effect.gen(function* () {
      const { host, port } = yield* RedisServer.start({ args: ["--requirepass", "secret"] })
      for (const [credentials, says] of [
        ["", "NOAUTH"],
        [":wrong@", "WRONGPASS"],
        ["nobody:secret@", "WRONGPASS"]
      ] as const) {
        const error = yield* connecting({ url: `redis://${credentials}${host}:${port}` })
        assert.strictEqual(error.reason, "NotAuthenticated", error.message)
        assert.include(error.message, says)
      }
      const { run } = yield* client({ url: `redis://:secret@${host}:${port}` })
      assert.strictEqual(yield* run(section), "done")
    })
  )

  it.live(
    "The layer fails in time if nothing comes back",
    behindProxy(({ proxy }) =>
      Effect.gen(function* () {
        yield* proxy.stall
        const error = yield* connecting({ url: proxy.url, commandTimeout: 500 })
        assert.strictEqual(error.reason, "TimedOut", error.message)
      })
    )
  )
})
