import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

describe("4 processes of 4 fibers with 20 sections each, on one name, with a counter that nothing else protects", () => {
  for (const kind of ["plain", "fair", "write", "spin", "fenced"] as const) {
    it.live(
      `4 processes of 4 fibers count to exactly 320 under a ${kind} lock`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const settings = { url: server.url, kind, lock: "ledger", fibers: 4, sections: 20, work: 0 } as const
          // no wake-up may be lost: it would be late to fall back to asking
          const all = { ...settings, counter: "count", log: "log", fallbackInterval: 300_000 }
          const processes = yield* Effect.forEach([1, 2, 3, 4], () => start("worker", all), {
            concurrency: "unbounded"
          })
          for (const process of processes) {
            yield* process.told("done")
            yield* process.ended
          }
          assert.strictEqual(yield* Effect.promise(() => redis.getdel("count")), "320")
          const log = yield* Effect.promise(() => redis.lrange("log", 0, -1))
          const tokens = log.map((line) => BigInt((JSON.parse(line) as { readonly token: string }).token))
          assert.isTrue(tokens.every((token, i) => i === 0 || token > tokens[i - 1]!))
          yield* Effect.promise(() => redis.del("log", "effect_redis_lock_writers:{ledger}"))
        })
      )
    )
  }
})
