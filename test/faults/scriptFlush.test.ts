import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { bare, client, onServer } from "./harness.ts"

describe("SCRIPT FLUSH in a loop", () => {
  it.live(
    "costs nobody a section: two clients count to exactly 400, and a long section stays renewed",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        let flushes = 0
        const flushing = yield* Effect.promise(() => redis.script("FLUSH", "SYNC")).pipe(
          Effect.andThen(Effect.sync(() => flushes++)),
          Effect.forever,
          Effect.forkScoped
        )
        const one = yield* client(server, { watchdogLeaseTime: 1500 })
        const other = yield* client(server)
        const counter = yield* bare(server)
        const section = Effect.gen(function* () {
          const seen = Number(yield* Effect.promise(() => counter.get("count")))
          yield* Effect.promise(() => counter.set("count", seen + 1))
        }).pipe(Lock.withLock("ledger"))
        const counting = Effect.forEach(Array.from({ length: 4 }), () => Effect.repeat(section, { times: 49 }), {
          concurrency: "unbounded",
          discard: true
        })
        const long = Effect.sleep(4000).pipe(Lock.withLock("report"))
        yield* Effect.all([one.run(counting), other.run(counting), one.run(long)], { concurrency: "unbounded" })
        assert.isUndefined(flushing.pollUnsafe())
        assert.isAbove(flushes, 100)
        assert.strictEqual(yield* Effect.promise(() => counter.getdel("count")), "400")
      })
    )
  )
})
