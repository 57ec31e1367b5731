import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { loss, storeError } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { belongsTo, connected, disconnected, lockKey } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

describe("a holder that is cut off from the server", { concurrent: true }, () => {
  const ways = [
    ["because connections are refused", "cut", 900],
    ["because nothing passes any more", "stall", 900],
    ["because nothing passes any more, and a command may take longer than the lease", "stall", 3500],
    ["because no reply comes through any more, though its renewals do", "stallReplies", 900]
  ] as const
  for (const [why, how, commandTimeout] of ways) {
    testLive(
      `A holder that is cut off is interrupted before anybody else gets in, and harms nobody when it is back: ${why}`,
      function* () {
        const { proxy, redis, server } = yield* behindProxy()
        const far = yield* client(proxy, { commandTimeout, watchdogLeaseTime: 3000 })
        const zombie = yield* enter(far, "report")
        const waiter = yield* queueUp(yield* client(server), "report")
        yield* proxy[how]
        const next = yield* waiter.entered
        // a timer that is due later than the end of the zombie's lease, should this process have been held up just then
        yield* Effect.sleep(1)
        assert.isTrue(zombie.wasInterrupted(), "two were in at once")
        assert.isFalse(yield* zombie.holding.isHeld)
        assert.isTrue(next.holding.token > zombie.holding.token)
        const lost = loss(yield* zombie.exit)
        assert.strictEqual(lost.reason, "RenewalFailed")
        assert.isDefined(lost.cause)
        assert.include(lost.message, "it was not renewed before its lease ran out")

        yield* proxy.restore
        yield* proxy.resume
        yield* connected(far)
        yield* belongsTo(redis, "report", next.holding)
        yield* next.holding.ensureHeld
        yield* next.finish
      }
    )
  }

  testLive("A holder that is cut off for less than the lease goes on, and is renewed again", function* () {
    const { proxy, redis } = yield* behindProxy()
    const far = yield* client(proxy, { watchdogLeaseTime: "6 seconds" })
    const section = yield* enter(far, "report")
    yield* proxy.cut
    yield* eventually(
      "it is time for a renewal",
      () => redis.pttl("report"),
      (left) => left < 3500
    )
    yield* proxy.restore
    yield* eventually(
      "it is renewed",
      () => redis.pttl("report"),
      (left) => left > 5000
    )
    yield* section.holding.ensureHeld
    yield* belongsTo(redis, "report", section.holding)
    yield* section.finish
  })

  testLive("A holder that is cut off when its section ends releases as soon as it is connected again", function* () {
    const { proxy, redis } = yield* behindProxy()
    const far = yield* client(proxy, { watchdogLeaseTime: "30 seconds", releaseTimeout: "20 seconds" })
    const section = yield* enter(far, "report")
    yield* proxy.cut
    yield* section.end
    // it cannot release, and knows it
    yield* disconnected(far)
    yield* belongsTo(redis, "report", section.holding)
    yield* proxy.restore
    assert.strictEqual(yield* Effect.flatten(section.exit), "done")
    assert.strictEqual(yield* Effect.promise(() => redis.exists("report")), 0)
  })

  testLive(
    "A holder that is cut off when its section ends and stays so fails in time, and the lock is released after all",
    function* () {
      const { proxy, redis } = yield* behindProxy()
      const far = yield* client(proxy, { watchdogLeaseTime: "30 seconds", releaseTimeout: 500 })
      const section = yield* enter(far, "report")
      yield* proxy.cut
      yield* section.end
      const error = storeError(yield* section.exit)
      assert.strictEqual(error.reason, "NotConnected")
      assert.include(error.message, `Lock "report" (the work is done), release (`)
      // who did would do the work twice
      assert.notMatch(error.message, /try again/i)
      yield* belongsTo(redis, "report", section.holding)
      yield* proxy.restore
      yield* lockKey(redis, "report", "gone")
    }
  )
})
