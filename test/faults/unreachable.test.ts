/**
 * Servers that cannot be reached: the layer fails in time, and says why.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { Cluster, Redis } from "ioredis"
import { client, clientOver } from "../kit/clients.ts"
import { soon } from "../kit/eventually.ts"
import { refusal } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const done = Lock.withLock(Effect.succeed("done"), "report")

/** A port of 127.0.0.1 where nobody listens. */
const closedPort = Effect.scoped(Effect.map(TcpProxy.make({ target: { port: 1 } }), ({ port }) => port))

describe("a server that cannot be reached", () => {
  testLive(
    "The layer fails over an application's lazy Cluster whose first attempt to connect leads to nothing",
    function* () {
      // as that of ioredis 6 does if a node turns out not to be ready
      class Unsettled extends Cluster {
        override connect(): Promise<void> {
          setImmediate(() => this.emit("close"))
          return new Promise(() => {})
        }
      }
      const cluster = new Unsettled([{ host: "127.0.0.1", port: yield* closedPort }], { lazyConnect: true })
      const error = yield* soon("it fails", refusal(IoRedis.fromClient(cluster)))
      assert.include(["ConnectionLost", "NotConnected", "ConnectionRefused"], error.reason)
    }
  )

  testLive("The layer fails with ConnectionRefused if nobody listens", function* () {
    const port = yield* closedPort
    const error = yield* refusal(IoRedis.layer({ url: `redis://127.0.0.1:${port}` }))
    assert.strictEqual(error.reason, "ConnectionRefused")
    assert.include(error.message, `ECONNREFUSED 127.0.0.1:${port}`)
  })

  testLive(
    "The layer fails with ConnectionRefused if nobody listens, also over an application's own client",
    function* () {
      const port = yield* closedPort
      for (const lazyConnect of [false, true]) {
        const redis = yield* Effect.acquireRelease(
          Effect.sync(() => new Redis(port, "127.0.0.1", { lazyConnect })),
          (redis) => Effect.sync(() => redis.disconnect())
        )
        const error = yield* refusal(IoRedis.fromClient(redis))
        assert.strictEqual(error.reason, "ConnectionRefused")
      }
    }
  )

  testLive("The layer waits for an application's own client that is still connecting", function* () {
    const { server } = yield* onServer()
    const redis = yield* bare(server)
    assert.strictEqual(redis.status, "connecting")
    const { run } = yield* clientOver(redis)
    assert.strictEqual(yield* run(done), "done")
  })

  testLive("The layer fails with NotAuthenticated if the server wants other credentials", function* () {
    const { host, port } = yield* RedisServer.start({ args: ["--requirepass", "secret"] })
    for (const [credentials, says] of [
      ["", "NOAUTH"],
      [":wrong@", "WRONGPASS"],
      ["nobody:secret@", "WRONGPASS"]
    ] as const) {
      const error = yield* refusal(IoRedis.layer({ url: `redis://${credentials}${host}:${port}` }))
      assert.strictEqual(error.reason, "NotAuthenticated", error.message)
      assert.include(error.message, says)
    }
    const { run } = yield* client({ url: `redis://:secret@${host}:${port}` })
    assert.strictEqual(yield* run(done), "done")
  })

  testLive("The layer fails in time if nothing comes back", function* () {
    const { proxy } = yield* behindProxy()
    yield* proxy.stall
    const error = yield* refusal(IoRedis.layer({ url: proxy.url, commandTimeout: 500 }))
    assert.strictEqual(error.reason, "TimedOut", error.message)
  })
})
