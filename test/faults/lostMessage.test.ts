import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { client, clientOver } from "../kit/clients.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { belongsTo, subscribers } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"

describe("a wake-up message that never comes", () => {
  it.live(
    "Waiters ask by themselves when a message is lost on a connection that looks alive",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        const holder = yield* enter(yield* client(server, { watchdogLeaseTime: "5 minutes" }), "report")
        const waiting = yield* clientOver(yield* bare(server), { fallbackInterval: 300, subscriptions: proxy })
        const first = yield* queueUp(waiting, "report")
        const second = yield* queueUp(waiting, "report")
        yield* subscribers(redis, "report", 1)
        yield* proxy.stallReplies
        yield* holder.end
        for (const waiter of [first, second]) {
          const section = yield* waiter.entered
          yield* belongsTo(redis, "report", section.holding)
          yield* section.finish
        }
        assert.strictEqual(yield* proxy.connections, 1)
      })
    )
  )
})
