import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { client } from "../kit/clients.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { belongsTo, lockKey } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

const lease = 1500

describe("SIGSTOP for longer than the lease, then SIGCONT", () => {
  for (const deaf of [false, true]) {
    it.live(
      deaf
        ? "a section that cannot be interrupted fails all the same, and its late release leaves the new holder alone"
        : "the first check says lost, the section is interrupted and fails, the new holder is left alone",
      onServer(({ server, redis }) =>
        Effect.gen(function* () {
          const settings = { url: server.url, lock: "report", watchdogLeaseTime: lease, deaf }
          const zombie = yield* start("holder", settings)
          const old = yield* zombie.told("acquired")
          const waiter = yield* queueUp(yield* client(server), "report")
          yield* zombie.signal("SIGSTOP")
          const stoppedAt = performance.now()
          const { end, exit, holding } = yield* waiter.entered
          assert.isTrue(holding.token > BigInt(old.token))
          const stopped = performance.now() - stoppedAt
          yield* zombie.signal("SIGCONT")

          // had any check after the stop said "held", this would be a few milliseconds
          const { unseen } = yield* zombie.told(deaf ? "saw the loss" : "interrupted")
          assert.isAtLeast(unseen, stopped / 2)
          const { message, outcome, reason } = yield* zombie.told("ended")
          assert.deepStrictEqual([outcome, reason], ["LockLost", "Expired"])
          assert.include(message, `Lock "report" was lost: its lease ran out`)
          assert.include(message, "the process was stopped or blocked")
          assert.strictEqual(zombie.hasTold("interrupted"), !deaf)
          yield* zombie.ended

          yield* belongsTo(redis, "report", holding)
          yield* holding.ensureHeld
          yield* end
          assert.strictEqual(yield* Effect.flatten(exit), "done")
        })
      )
    )
  }

  it.live(
    "A grant that arrives while the process is stopped comes too late, is not used, and is rolled back",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        const mine = yield* client(server)
        // so that the server knows the scripts
        yield* (yield* enter(mine, "another")).end
        const settings = {
          url: proxy.url,
          lock: "report",
          watchdogLeaseTime: lease,
          commandTimeout: 20_000,
          waitTime: 0
        }
        const asked = yield* proxy.stallRepliesAfter("report")
        const late = yield* start("holder", settings)
        yield* asked
        const granted = yield* lockKey(redis, "report", "there")
        assert.strictEqual(granted, 1)
        yield* late.signal("SIGSTOP")
        yield* proxy.resume
        const { end, exit, holding } = yield* enter(mine, "report")
        yield* late.signal("SIGCONT")

        const { message, outcome, reason } = yield* late.told("ended")
        assert.deepStrictEqual([outcome, reason], ["LockStoreError", "TimedOut"])
        assert.include(message, "too late for a lease of 1500 ms")
        assert.isFalse(late.hasTold("acquired"))
        yield* late.ended
        yield* belongsTo(redis, "report", holding)
        yield* end
        assert.strictEqual(yield* Effect.flatten(exit), "done")
      })
    )
  )
})
