import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { client } from "../kit/clients.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { belongsTo, subscribers } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

describe("SIGKILL", () => {
  it.live(
    "After SIGKILL of a holder a waiter gets the lock when the lease is over, with a higher token",
    onServer(({ server, redis }) =>
      Effect.gen(function* () {
        const holder = yield* start("holder", { url: server.url, lock: "report", watchdogLeaseTime: 2000 })
        const killed = yield* holder.told("acquired")
        const waiter = yield* queueUp(yield* client(server), "report")
        yield* subscribers(redis, "report", 1)
        yield* belongsTo(redis, "report", killed)
        yield* holder.signal("SIGKILL")
        const { end, exit, holding } = yield* waiter.entered
        assert.isTrue(holding.token > BigInt(killed.token))
        yield* belongsTo(redis, "report", holding)
        yield* end
        assert.strictEqual(yield* Effect.flatten(exit), "done")
      })
    )
  )

  it.live(
    "After SIGKILL of a waiter nothing of it is left, and the next waiter is not held up",
    onServer(({ server, redis }) =>
      Effect.gen(function* () {
        const mine = yield* client(server)
        const first = yield* enter(mine, "report")
        const doomed = yield* start("holder", { url: server.url, lock: "report", watchdogLeaseTime: 30_000 })
        yield* subscribers(redis, "report", 1)
        const next = yield* queueUp(yield* client(server), "report")
        yield* subscribers(redis, "report", 2)
        yield* doomed.signal("SIGKILL")
        yield* subscribers(redis, "report", 1)
        yield* first.end
        const second = yield* next.entered
        yield* belongsTo(redis, "report", second.holding)
        assert.isFalse(doomed.hasTold("acquired"))
        yield* second.end
        assert.strictEqual(yield* Effect.flatten(second.exit), "done")
      })
    )
  )
})
