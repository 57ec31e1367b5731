import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  bare,
  behindProxy,
  client,
  clientOver,
  enter,
  lockKey,
  onServer,
  queueUp,
  subscribers,
  waiterSleeps
} from "./harness.ts"

// Nobody falls back to asking within a test's time: who wakes up was told.
const patient = { fallbackInterval: "5 minutes", watchdogLeaseTime: "5 minutes" } as const

describe("a subscription that breaks while waiting", () => {
  it.live(
    "is made again, and wakes the waiter when the lock is released",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const holder = yield* enter(yield* client(server, patient), "report")
        const waiter = yield* queueUp(yield* client(server, patient), "report")
        yield* subscribers(redis, "report", 1)
        for (let i = 0; i < 3; i++) {
          assert.strictEqual(yield* Effect.promise(() => redis.client("KILL", "TYPE", "PUBSUB")), 1)
          yield* subscribers(redis, "report", 1)
        }
        assert.isUndefined(waiter.fiber.pollUnsafe())
        yield* holder.end
        const next = yield* waiter.entered
        yield* next.end
        assert.strictEqual(yield* Effect.flatten(next.exit), "done")
      })
    )
  )

  it.live(
    "wakes the waiter when it stands again: it may have missed the release, and has",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        const holder = yield* enter(yield* client(server, patient), "report")
        const waiting = yield* clientOver(yield* bare(server), { ...patient, subscriptions: proxy })
        const waiter = yield* queueUp(waiting, "report")
        yield* waiterSleeps(redis, "report")
        yield* proxy.cut
        yield* subscribers(redis, "report", 0)
        yield* holder.end
        yield* lockKey(redis, "report", "gone")
        yield* Effect.flatten(holder.exit)
        yield* Effect.sleep(300)
        assert.isUndefined(waiter.fiber.pollUnsafe(), "was woken without the subscription")
        yield* proxy.restore
        const next = yield* waiter.entered
        yield* next.end
        assert.strictEqual(yield* Effect.flatten(next.exit), "done")
      })
    )
  )
})
