/**
 * A process that is told to end, and closes its client before the scopes of what that holds.
 */
import { RedisCluster, RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Redis } from "ioredis"
import { until } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import type { ClosingSettings } from "./fixtures/closing.ts"
import { start } from "./processes.ts"
import { testLive } from "../kit/test.ts"

/** Names of what stands at a server. */
const keysAt = ({ url }: Pick<RedisServer.RedisServer, "url">) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Redis(url)),
    (redis) => Effect.promise(() => redis.keys("*")),
    (redis) => Effect.sync(() => redis.disconnect())
  )

/** Nothing is left that keeps anybody out: tokens and semaphores stay. */
const isHarmless = (key: string): boolean =>
  /token|:leased|:counted|effect_redis_lock_client/.test(key) && !key.includes("grant")

const endsAndGivesBack = (settings: ClosingSettings, servers: ReadonlyArray<Pick<RedisServer.RedisServer, "url">>) =>
  Effect.gen(function* () {
    const program = yield* start("closing", settings)
    yield* program.told("holding")
    const held = (yield* Effect.forEach(servers, keysAt)).flat().filter((key) => !isHarmless(key))
    assert.isAbove(held.length, 2)
    yield* program.signal("SIGTERM")
    yield* until("the program ends", () => program.hasEnded())
    assert.deepStrictEqual(
      (yield* Effect.forEach(servers, keysAt)).flat().filter((key) => !isHarmless(key)),
      []
    )
  })

testLive("A process that closes its client at SIGTERM leaves nothing on a server", function* () {
  const { redis, server } = yield* onServer()
  yield* endsAndGivesBack({ where: "server", urls: [server.url], lock: "report" }, [server])
  yield* Effect.promise(() => redis.del("report:counted", "report:leased"))
})

testLive("A process that closes its client at SIGTERM leaves nothing on a quorum", function* () {
  const servers = (yield* Effect.forEach([1, 2, 3], () => onServer())).map(({ server }) => server)
  yield* endsAndGivesBack({ where: "quorum", urls: servers.map(({ url }) => url), lock: "report" }, servers)
})

testLive("A process that closes its client at SIGTERM leaves nothing on a cluster", function* () {
  const cluster = yield* RedisCluster.start()
  yield* endsAndGivesBack(
    { where: "cluster", urls: cluster.urls, lock: "report" },
    cluster.urls.map((url) => ({ url }))
  )
})

for (const fault of ["stopped", "killed"] as const) {
  testLive(
    `A process that holds 120 locks gives them up at the same time, not one after the other, when its Redis is ${fault}`,
    function* () {
      const server = yield* RedisServer.start()
      const settings = { where: "server", urls: [server.url], lock: "report", more: 120 } as const
      const program = yield* start("closing", settings)
      yield* program.told("holding")
      yield* fault === "stopped" ? server.pause : server.kill
      yield* program.signal("SIGTERM")
      // the release timeout is 5 seconds; even two at a time would take five minutes, for which nothing here waits
      yield* until("the program ends", () => program.hasEnded())
    }
  )
}
