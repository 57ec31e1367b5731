/**
 * Two processes want the same locks in opposite orders.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { bare } from "../kit/server/bareRedis.ts"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"
import { noLockLeft } from "./quorumSite.ts"

const cycles = 200

describe("two processes that want {a, b} and {b, a}", () => {
  for (const [where, servers] of [
    ["on one server", 1],
    ["on a server each, where they are taken one by one", 2]
  ] as const) {
    it.live(
      `Two processes that want {a, b} and {b, a} get them ${cycles} times each ${where}, without deadlock, half an acquisition or starvation`,
      onServer(({ redis: counter, server: counterServer }) =>
        Effect.gen(function* () {
          const urls = yield* Effect.forEach(Array.from({ length: servers }), () =>
            Effect.map(RedisServer.start(), ({ url }) => url)
          )
          const a = { url: urls[0]!, name: "a" }
          const b = { url: urls[servers - 1]!, name: "b" }
          const settings = { counterUrl: counterServer.url, cycles, processes: 2 }
          const processes = [
            yield* start("multiCounter", { ...settings, process: "ab", members: [a, b] }),
            yield* start("multiCounter", { ...settings, process: "ba", members: [b, a] })
          ]
          const told = yield* Effect.forEach(processes, (process) => process.told("counted"))
          for (const { partial, progress } of told) {
            assert.strictEqual(partial, 0)
            // when the first was through the other had had its share
            for (const process of ["ab", "ba"]) assert.isAtLeast(Number(progress[process]), cycles / 10, process)
          }
          for (const process of processes) yield* process.ended
          const counts = yield* Effect.promise(() => counter.mget("count:a", "count:b"))
          assert.deepStrictEqual(counts, [String(2 * cycles), String(2 * cycles)])
          for (const url of urls) yield* Effect.flatMap(bare({ url }), noLockLeft)
          yield* Effect.promise(() => counter.flushall())
        })
      )
    )
  }
})
