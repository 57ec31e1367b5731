/**
 * What the driver warns of at its start.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { clientOf } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

const evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]

/** What the driver has warned of, and at which level. */
const recording = () => {
  const lines: Array<string> = []
  const servers: Array<unknown> = []
  const logger = Logger.make(({ fiber, logLevel }) => {
    const { server, warning } = fiber.getRef(References.CurrentLogAnnotations)
    if (warning === undefined) return
    lines.push(`${logLevel} ${String(warning)}`)
    servers.push(server)
  })
  const layer = Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Debug"))
  return { lines, servers, layer }
}

const section = Lock.withLock(Effect.succeed("done"), "report")

/** How often the server was asked for INFO by others than ioredis' own ready check. */
const asked = (redis: { readonly info: (section: string) => Promise<string> }) => () =>
  redis.info("commandstats").then((text) => Number(/cmdstat_info:calls=(\d+)/.exec(text)?.[1] ?? 0))

testLive(
  "The driver warns once of a server that may evict locks, and only debugs that nothing is saved to disk",
  function* () {
    const server = yield* RedisServer.start({ args: evicting })
    const log = recording()
    const driver = IoRedis.layer({ url: server.url })
    const mine = yield* Effect.provide(clientOf(Layer.provide(RedisLock.layer(), driver)), log.layer)
    yield* eventually(
      "it has warned",
      () => log.lines,
      (lines) => lines.length === 2
    )
    const redis = yield* bare(server)
    yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "normal"))
    yield* eventually(
      "it is connected again",
      () => Effect.runPromise(Effect.exit(mine.run(section))),
      (exit) => exit._tag === "Success"
    )
    assert.deepStrictEqual(log.lines, ["Warn eviction", "Debug persistence"])
    assert.deepStrictEqual(log.servers, Array(2).fill(`127.0.0.1:${server.port}`))
  }
)

testLive("The driver warns that nothing is saved to disk if locks live longer than a minute", function* () {
  const { url } = yield* RedisServer.start()
  const log = recording()
  yield* Effect.provide(clientOf(IoRedis.layerRedisLock({ urls: [url], watchdogLeaseTime: "2 minutes" })), log.layer)
  yield* eventually(
    "it has warned",
    () => log.lines,
    (lines) => lines.length === 1
  )
  assert.deepStrictEqual(log.lines, ["Warn persistence"])
})

testLive("The driver warns of replicas of the master that sentinels name", function* () {
  const site = yield* RedisSentinel.start()
  const log = recording()
  const url = `redis+sentinel://127.0.0.1:${site.sentinels[0]!.port}/${site.name}`
  const warnings = ["replicas", "clock"] as const
  yield* Effect.provide(clientOf(Layer.provide(RedisLock.layer(), IoRedis.layer({ url, warnings }))), log.layer)
  yield* eventually(
    "it has warned",
    () => log.lines,
    (lines) => lines.length === 1
  )
  assert.deepStrictEqual(log.lines, ["Warn replicas"])
})

testLive("The driver warns once for all nodes of a cluster, and names them", function* () {
  const cluster = yield* RedisCluster.start({ args: evicting })
  const log = recording()
  const url = cluster.urls.join(",").replaceAll("redis://", "").replace(/^/, "redis+cluster://")
  const warnings = ["eviction"] as const
  yield* Effect.provide(clientOf(Layer.provide(RedisLock.layer(), IoRedis.layer({ url, warnings }))), log.layer)
  yield* eventually(
    "it has warned",
    () => log.lines,
    (lines) => lines.length === 1
  )
  assert.deepStrictEqual(log.lines, ["Warn eviction"])
  for (const { port } of cluster.nodes) assert.include(String(log.servers[0]), `127.0.0.1:${port}`)
})

testLive("The driver says nothing of a server that refuses INFO", function* () {
  const user = ["--user", "locks", "on", ">pw", "~*", "&*", "+@all", "-info"]
  const server = yield* RedisServer.start({ args: [...evicting, ...user] })
  const log = recording()
  const redis = yield* bare(server)
  const url = server.url.replace("://", "://locks:pw@")
  const driver = IoRedis.layer({ url, ioredis: { enableReadyCheck: false } })
  const mine = yield* Effect.provide(clientOf(Layer.provide(RedisLock.layer(), driver)), log.layer)
  yield* eventually(
    "the server has refused",
    () => redis.info("commandstats"),
    (text) => /cmdstat_info:.*rejected_calls=[1-9]/.test(text)
  )
  assert.strictEqual(yield* mine.run(section), "done")
  assert.deepStrictEqual(log.lines, [])
})

testLive("The driver asks nothing where no warnings are wanted", function* () {
  const server = yield* RedisServer.start({ args: evicting })
  const redis = yield* bare(server)
  const log = recording()
  const driver = IoRedis.layer({ url: server.url, warnings: [], ioredis: { enableReadyCheck: false } })
  const before = yield* Effect.promise(asked(redis))
  const mine = yield* Effect.provide(clientOf(Layer.provide(RedisLock.layer(), driver)), log.layer)
  assert.strictEqual(yield* mine.run(section), "done")
  // our own question before is counted now
  assert.strictEqual(yield* Effect.promise(asked(redis)), before + 1)
  assert.deepStrictEqual(log.lines, [])
})
