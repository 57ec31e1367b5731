import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { client, clientOver } from "../kit/clients.ts"
import { loss } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { belongsTo, subscribers } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"

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

  it.live(
    "A waiter asks by itself when subscribing hangs",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        yield* proxy.stall
        const holder = yield* enter(yield* client(server, { watchdogLeaseTime: "5 minutes" }), "report")
        const waiting = yield* clientOver(yield* bare(server), { fallbackInterval: 300, subscriptions: proxy })
        const waiter = yield* queueUp(waiting, "report")
        // time to subscribe, which it cannot
        yield* Effect.sleep(500)
        yield* subscribers(redis, "report", 0)
        yield* holder.end
        const section = yield* waiter.entered
        yield* section.finish
      })
    )
  )

  it.live(
    "When somebody deletes the key and tells nobody, the waiter asks by itself, and the holder learns of it",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const holder = yield* enter(yield* client(server, { watchdogLeaseTime: "6 seconds" }), "report")
        const waiter = yield* queueUp(yield* client(server, { fallbackInterval: 300 }), "report")
        yield* subscribers(redis, "report", 1)
        assert.strictEqual(yield* Effect.promise(() => redis.del("report")), 1)
        const section = yield* waiter.entered
        assert.strictEqual(loss(yield* holder.exit).reason, "NotOwner")
        assert.isTrue(holder.wasInterrupted())
        yield* belongsTo(redis, "report", section.holding)
        yield* section.finish
      })
    )
  )
})
