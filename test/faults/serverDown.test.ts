import { NodeRedis } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { type Client, client, clientOf, clientOver, locksOver } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected, disconnected, lockKey } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { testLive } from "../kit/test.ts"

// whoever is willing to wait outlives all this: see waiting.test.ts
const section = Lock.withLock(Effect.void, "report", { waitTime: 0 })
const token = "redisson_lock_token:{report}"

/**
 * Connects, loads the scripts and learns the server's clock: with a lease that outlasts what a busy machine stops a process for, and again where
 * that takes longer than a command may.
 */
const warmUp = Effect.retry(Lock.withLock(Effect.void, "report", { leaseTime: "1 minute" }), {
  while: (error) => error._tag === "LockStoreError" && (error.isTransient || error.workDone === true)
})

/** Several callers that all give up, each in its way. */
const callers = ({ run }: Client): Effect.Effect<ReadonlyArray<Exit.Exit<unknown, unknown>>> =>
  soon(
    "every caller gives up",
    Effect.all(
      [
        Effect.exit(run(section)),
        Effect.exit(run(Lock.withLock(Effect.void, "report", { waitTime: 300 }))),
        Effect.exit(Effect.timeout(run(section), "1 minute")),
        Effect.exit(run(Lock.withLockIfAvailable(Effect.void, "report")))
      ],
      { concurrency: "unbounded" }
    )
  )

describe("a caller that gives up while the server is down", { concurrent: true }, () => {
  testLive(
    "A caller that gives up while the server is killed is told at once, and nothing is acquired when it is back",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server)
      yield* server.kill
      yield* disconnected(mine)
      for (const exit of yield* callers(mine)) {
        const error = storeError(exit)
        assert.strictEqual(error.reason, "NotConnected")
        assert.isFalse(error.isOutcomeUnknown)
        assert.isTrue(error.isTransient)
        assert.include(error.message, `Lock "report", lock/acquire: there is no connection to Redis at the moment`)
      }
      yield* server.restart
      yield* connected(mine)
      assert.deepStrictEqual(yield* Effect.promise(() => redis.keys("*")), [])
    }
  )

  testLive(
    "No command that was given up takes the lock, even over an application's own client, which sends commands again",
    function* () {
      const { proxy, redis } = yield* behindProxy()
      const leaseMillis = 2000
      const mine = yield* clientOver(yield* bare(proxy), { commandTimeout: 1000, watchdogLeaseTime: leaseMillis })
      yield* mine.run(warmUp)
      yield* Effect.promise(() => redis.del(token))
      const askedAt = yield* serverTime(redis)
      yield* proxy.stall
      const acquisition = yield* Effect.forkScoped(mine.run(section), { startImmediately: true })
      yield* proxy.cut
      storeError(yield* soon("the acquisition fails", Fiber.await(acquisition)))
      yield* eventually(
        "the lease that was asked for would be over, and with it what a ghost holds",
        serverTime(redis),
        (now) => now > askedAt + leaseMillis + 500
      )
      yield* proxy.resume
      yield* proxy.restore
      yield* connected(mine)
      assert.strictEqual(yield* Effect.promise(() => redis.exists("report")), 0, "a ghost holds the lock")
      assert.strictEqual(yield* Effect.promise(() => redis.exists(token)), 0, "a command was sent after all")
    }
  )
})

const drivers = {
  ioredis: ({ url }: { readonly url: string }) => client({ url }, { watchdogLeaseTime: "5 minutes" }),
  "Effect's Redis (node-redis)": ({ url }: { readonly url: string }) =>
    clientOf(
      locksOver(
        Layer.provide(
          RedisDriver.layerRedis,
          NodeRedis.layer({ url, disableOfflineQueue: true, socket: { reconnectStrategy: 50 } })
        ),
        { watchdogLeaseTime: "5 minutes" }
      )
    )
}

describe("a connection that comes and goes", { concurrent: true }, () => {
  for (const [name, connect] of Object.entries(drivers)) {
    testLive(
      `A connection that comes and goes fails commands that do not get through, with a reason that says so, and leaves no lock behind: ${name}`,
      function* () {
        const { proxy, redis } = yield* behindProxy()
        const mine = yield* connect(proxy)
        const reasons = new Set<string>()
        let done = 0
        const trying = yield* mine.run(section).pipe(
          Effect.matchEffect({
            onSuccess: () => Effect.sync(() => done++),
            onFailure: (error) => {
              // a grant whose reply was lost may be taken back in the background yet, and keeps out whoever does not wait
              if (error._tag !== "LockTimeout")
                reasons.add(error._tag === "LockStoreError" ? error.reason : error.message)
              return Effect.sleep(1)
            }
          }),
          Effect.forever,
          Effect.forkScoped
        )
        for (let i = 0; i < 20; i++) {
          const before = done
          yield* eventually(
            "sections get through",
            () => done,
            (done) => done > before + 5
          )
          yield* proxy.dropConnections
        }
        yield* Fiber.interrupt(trying)
        assert.isAbove(reasons.size, 0)
        for (const reason of reasons) assert.include(["ConnectionLost", "NotConnected"], reason)
        yield* connected(mine)
        yield* lockKey(redis, "report", "gone")
      }
    )
  }
})
