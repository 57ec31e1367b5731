import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

describe("many at once, on one name, with a counter that nothing else protects", () => {
  it.live(
    "16 fibers of one client with 100 sections each count to exactly 1600",
    onServer(({ server }) =>
      Effect.gen(function* () {
        const { run } = yield* client(server)
        let count = 0
        const section = Effect.gen(function* () {
          const seen = count
          yield* Effect.yieldNow
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          count = seen + 1
        }).pipe(Lock.withLock("ledger"))
        yield* Effect.forEach(Array.from({ length: 16 }), () => Effect.repeat(section, { times: 99 }), {
          concurrency: "unbounded",
          discard: true
        }).pipe(run)
        assert.strictEqual(count, 1600)
      })
    )
  )

  it.live(
    "4 processes of 4 fibers with 100 sections each count to exactly 1600",
    onServer(({ server, redis }) =>
      Effect.gen(function* () {
        const settings = { url: server.url, lock: "ledger", counter: "count", fibers: 4, sections: 100 }
        const processes = yield* Effect.forEach(Array.from({ length: 4 }), () => start("counter", settings))
        for (const process of processes) {
          const { sections, tokensRose } = yield* process.told("counted")
          assert.strictEqual(sections, 400)
          assert.isTrue(tokensRose)
          yield* process.ended
        }
        assert.strictEqual(yield* Effect.promise(() => redis.getdel("count")), "1600")
      })
    )
  )
})
