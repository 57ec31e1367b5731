/**
 * A process that is told to end, and closes its client before the scopes of what that holds.
 */
import { RedisCluster, RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Redis } from "ioredis"
import { eventually, until } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import type { ClosingSettings } from "./fixtures/closing.ts"
import { start } from "./processes.ts"

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
    yield* eventually(
      "the program ends",
      () => program.hasEnded(),
      (hasEnded) => hasEnded
    )
    assert.deepStrictEqual(
      (yield* Effect.forEach(servers, keysAt)).flat().filter((key) => !isHarmless(key)),
      []
    )
  })

describe("SIGTERM to a process that closes its client first", () => {
  it.live(
    "A process that closes its client at SIGTERM leaves nothing on a server",
    onServer(({ redis, server }) =>
      Effect.andThen(
        endsAndGivesBack({ where: "server", urls: [server.url], lock: "report" }, [server]),
        Effect.promise(() => redis.del("report:counted", "report:leased"))
      )
    )
  )

  it.live(
    "A process that closes its client at SIGTERM leaves nothing on a quorum",
    onServer((first) =>
      onServer((second) =>
        onServer((third) => {
          const servers = [first.server, second.server, third.server]
          return endsAndGivesBack({ where: "quorum", urls: servers.map(({ url }) => url), lock: "report" }, servers)
        })()
      )()
    )
  )

  it.live("A process that closes its client at SIGTERM leaves nothing on a cluster", () =>
    Effect.gen(function* () {
      const cluster = yield* RedisCluster.start()
      yield* endsAndGivesBack(
        { where: "cluster", urls: cluster.urls, lock: "report" },
        cluster.urls.map((url) => ({ url }))
      )
    }).pipe(Effect.scoped)
  )

  for (const fault of ["stopped", "killed"] as const) {
    it.live(
      `A process that holds 120 locks gives them up at the same time, not one after the other, when its Redis is ${fault}`,
      () =>
        Effect.gen(function* () {
          const server = yield* RedisServer.start()
          const settings = { where: "server", urls: [server.url], lock: "report", more: 120 } as const
          const program = yield* start("closing", settings)
          yield* program.told("holding")
          yield* fault === "stopped" ? server.pause : server.kill
          yield* program.signal("SIGTERM")
          // the release timeout is 5 seconds; even two at a time would take five minutes, for which nothing here waits
          yield* until("the program ends", () => program.hasEnded())
        }).pipe(Effect.scoped)
    )
  }
})
