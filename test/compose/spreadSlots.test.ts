/**
 * What a MultiLock says of members in different slots of a cluster.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { Lock, MultiLock } from "effect-redis-lock"
import { client, clientOf, locksOver } from "../kit/clients.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"

const recording = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ fiber, logLevel, message }) => {
    if (fiber.getRef(References.CurrentLogAnnotations)["warning"] === "slots")
      lines.push(`${logLevel} ${String(message)}`)
  })
  return { lines, layer: Logger.layer([logger]) }
}

const multi = (...names: ReadonlyArray<string>) =>
  Lock.withLock(Effect.succeed("done"), MultiLock.make(names.map((name) => Lock.make(name))))

describe("a MultiLock", () => {
  it.live("A MultiLock on a cluster says once that its members are in different slots, at its first use", () =>
    Effect.gen(function* () {
      const { urls } = yield* RedisCluster.start()
      const mine = yield* clientOf(locksOver(IoRedis.layerCluster({ nodes: urls, warnings: [] })))
      const log = recording()
      const run = (...names: ReadonlyArray<string>) => Effect.provide(mine.run(multi(...names)), log.layer)
      assert.strictEqual(yield* run("{orders}:1", "{orders}:2"), "done")
      assert.deepStrictEqual(log.lines, [])
      for (let i = 0; i < 3; i++) assert.strictEqual(yield* run("a", "b"), "done")
      assert.strictEqual(log.lines.length, 1)
      assert.match(log.lines[0]!, /^Info The members of the MultiLock "a, b" are in different slots/)
    })
  )

  it.live("A MultiLock on one server says nothing of slots", () =>
    Effect.gen(function* () {
      const mine = yield* client({ url: redisUrl })
      const log = recording()
      const id = crypto.randomUUID()
      assert.strictEqual(yield* Effect.provide(mine.run(multi(`a:${id}`, `b:${id}`)), log.layer), "done")
      assert.deepStrictEqual(log.lines, [])
    })
  )
})
