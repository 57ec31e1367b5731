import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Lock } from "effect-redis-lock"
import { type Client, client, clientOver } from "../kit/clients.ts"
import { soon, until } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { enter } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected, lockKey } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

// Long enough that only an undo can free the lock within the time of a test.
const watchdogLeaseTime = "5 minutes"
const commandTimeout = 1000

/** Lets the server learn the scripts, and the client the server's clock, so that one command does one thing. */
const warmUp = ({ run }: Client) => run(Lock.withLock(Effect.void, "warm-up"))

const ways = {
  // whoever is willing to wait asks again: see waiting.test.ts
  withLock: Lock.withLock(Effect.void, "report", { waitTime: 0 }),
  withLockIfAvailable: Lock.withLockIfAvailable(Effect.void, "report"),
  scoped: Effect.scoped(Lock.scoped("report", { waitTime: 0 })),
  tryScoped: Effect.scoped(Lock.tryScoped("report"))
}

describe("an acquisition whose reply never comes", { concurrent: true }, () => {
  for (const [name, acquire] of Object.entries(ways)) {
    testLive(
      `An acquisition whose reply never comes times out with unknown outcome and is rolled back: ${name}`,
      function* () {
        const { proxy, redis } = yield* behindProxy()
        const mine = yield* client(proxy, { commandTimeout, watchdogLeaseTime })
        yield* warmUp(mine)
        const { run } = mine
        yield* Effect.promise(() => redis.config("RESETSTAT"))
        const asked = yield* proxy.stallRepliesAfter("report")
        const acquisition = yield* Effect.forkScoped(run(acquire as Effect.Effect<unknown, unknown>))
        yield* asked
        const error = storeError(yield* soon("the acquisition fails", Fiber.await(acquisition)))
        yield* until(
          // which only its token shows once it is rolled back
          "it was carried out, or refused where a busy machine delivered it late",
          async () =>
            (await redis.exists("redisson_lock_token:{report}")) === 1 ||
            (await redis.info("errorstats")).includes("errorstat_LATE")
        )
        assert.strictEqual(error.reason, "TimedOut")
        assert.strictEqual(error.operation, "lock/acquire")
        assert.isTrue(error.isOutcomeUnknown)
        assert.isTrue(error.isTransient)
        assert.include(error.message, `Lock "report", lock/acquire: Redis did not answer in time`)
        assert.include(error.message, "no reply within 1000 ms")
        yield* lockKey(redis, "report", "gone")
      }
    )
  }

  testLive(
    "An acquisition whose connection breaks fails with unknown outcome, and is rolled back when there is a connection again",
    function* () {
      const { proxy, redis } = yield* behindProxy()
      // what ends the acquisition is the connection
      const mine = yield* client(proxy, { commandTimeout: "1 minute", watchdogLeaseTime })
      yield* warmUp(mine)
      const { run } = mine
      const asked = yield* proxy.dropRepliesAfter("report")
      const acquisition = yield* Effect.forkScoped(run(ways.withLock))
      yield* asked
      yield* lockKey(redis, "report", "there")
      yield* proxy.cut
      const error = storeError(yield* soon("the acquisition fails", Fiber.await(acquisition)))
      assert.strictEqual(error.reason, "ConnectionLost")
      assert.isTrue(error.isOutcomeUnknown)
      assert.include(error.message, "the connection broke before the reply came")
      yield* lockKey(redis, "report", "there")
      yield* proxy.resume
      yield* proxy.restore
      yield* lockKey(redis, "report", "gone")
    }
  )
})

describe("a release whose reply never comes", { concurrent: true }, () => {
  testLive("A release whose reply never comes is repeated until one comes, and then counts as done", function* () {
    const { proxy, redis, server } = yield* behindProxy()
    yield* warmUp(yield* client(server))
    const mine = yield* client(proxy, { commandTimeout, releaseTimeout: "20 seconds" })
    const section = yield* enter(mine, "report", { leaseTime: "5 minutes" })
    const sentAgain = yield* proxy.stallRepliesAfter((sent) => sent.split("evalsha").length > 2)
    yield* proxy.stallReplies
    yield* section.end
    yield* lockKey(redis, "report", "gone")
    yield* soon("the release is sent again", sentAgain)
    yield* proxy.resume
    assert.strictEqual(yield* Effect.flatten(section.exit), "done")
  })

  testLive(
    "A release whose connection breaks counts as done, even if the client sends it again by itself",
    function* () {
      const { proxy, redis, server } = yield* behindProxy()
      yield* warmUp(yield* client(server))
      for (const mine of [yield* client(proxy), yield* clientOver(yield* bare(proxy))]) {
        const section = yield* enter(mine, "report", { leaseTime: "5 minutes" })
        const asked = yield* proxy.dropRepliesAfter("report")
        yield* section.end
        yield* asked
        yield* lockKey(redis, "report", "gone")
        yield* proxy.cut
        yield* proxy.resume
        yield* proxy.restore
        assert.strictEqual(yield* Effect.flatten(section.exit), "done")
        yield* connected(mine)
      }
    }
  )

  testLive("A release whose reply does not come within the release timeout fails the section, in time", function* () {
    const { proxy, redis, server } = yield* behindProxy()
    yield* warmUp(yield* client(server))
    const mine = yield* client(proxy, { commandTimeout, releaseTimeout: 1500 })
    const section = yield* enter(mine, "report", { leaseTime: "5 minutes" })
    yield* proxy.stall
    yield* section.end
    const error = storeError(yield* section.exit)
    // that of the last try: a silent connection is replaced, and on a busy machine before the time is over
    assert.include(["TimedOut", "ConnectionLost", "NotConnected"], error.reason)
    // a retry would do the work again
    assert.isTrue(error.workDone)
    assert.isFalse(error.isTransient)
    assert.include(error.message, `Lock "report" (the work is done), release (`)
    yield* proxy.resume
    yield* lockKey(redis, "report", "gone")
  })
})
