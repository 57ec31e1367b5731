import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FencedLock, SpinLock } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { onServer } from "../kit/server/onServer.ts"
import { waitFor } from "./kinds.ts"
import { start } from "./processes.ts"

describe("a killed holder", () => {
  for (const [kind, make] of [
    ["fenced", (name: string) => FencedLock.make(name)],
    ["spin", (name: string) => SpinLock.make(name)]
  ] as const) {
    it.live(
      `A killed holder of a ${kind} lock is replaced when its lease is over, with a higher token`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const settings = { url: server.url, kind, lock: "report", fibers: 1, watchdogLeaseTime: 1500 } as const
          const doomed = yield* start("worker", settings)
          const { owner, token } = yield* doomed.told("entered")
          const waiter = yield* waitFor(yield* client(server), make("report"))
          assert.deepStrictEqual(yield* Effect.promise(() => redis.hkeys("report")), [owner])
          yield* doomed.signal("SIGKILL")
          const holding = yield* waiter.entered
          assert.isTrue(holding.token > BigInt(token))
          if (kind === "fenced") assert.deepStrictEqual([token, holding.token], ["1", 2n])
          yield* holding.release
        })
      )
    )
  }
})

describe("4 processes of 4 fibers with 50 sections each, on one name, with a counter that nothing else protects", () => {
  for (const kind of ["fair", "write", "spin", "fenced"] as const) {
    it.live(
      `4 processes of 4 fibers count to exactly 800 under a ${kind} lock`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const settings = { url: server.url, kind, lock: "ledger", fibers: 4, sections: 50, work: 0 } as const
          const all = { ...settings, counter: "count", log: "log" }
          const processes = yield* Effect.forEach([1, 2, 3, 4], () => start("worker", all), {
            concurrency: "unbounded"
          })
          for (const process of processes) {
            yield* process.told("done")
            yield* process.ended
          }
          assert.strictEqual(yield* Effect.promise(() => redis.getdel("count")), "800")
          const log = yield* Effect.promise(() => redis.lrange("log", 0, -1))
          const tokens = log.map((line) => BigInt((JSON.parse(line) as { readonly token: string }).token))
          assert.isTrue(tokens.every((token, i) => i === 0 || token > tokens[i - 1]!))
          yield* Effect.promise(() => redis.del("log", "effect_redis_lock_writers:{ledger}"))
        })
      )
    )
  }
})
