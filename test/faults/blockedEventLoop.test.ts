import { assert, describe, it } from "@effect/vitest"
import { NodeRedis } from "@effect/platform-node"
import { Duration, Effect, Fiber, Layer, Scope } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { client, clientOf, locksOver } from "../kit/clients.ts"
import { loss } from "../kit/exits.ts"
import { belongsTo } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

/** Lets nothing else run in this process: no timer, no reply. */
const block = (millis: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis)

/** Connects, and loads the scripts; again where a busy machine takes longer for that than a command may. */
const warmUp = Effect.retry(Lock.withLock(Effect.void, "report"), {
  while: (error) => error._tag === "LockStoreError" && (error.isTransient || error.workDone === true)
})

describe("an event loop that is blocked", () => {
  it.live(
    "After an event loop was blocked for longer than the lease, the first check says lost, and the late release leaves the new holder alone",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const { run } = yield* client(server, { watchdogLeaseTime: 6000 })
        const scope = yield* Effect.scope
        const settings = { url: server.url, lock: "report", watchdogLeaseTime: 6000 }
        let owner = ""
        const section = Effect.gen(function* () {
          const holding = yield* Lock.currentHolding("report")
          const waiter = yield* Scope.provide(start("holder", settings), scope)
          yield* waiter.told("ready")
          // An unanswered renewal would be the reason of the loss: the watchdog's are answered before a second one of ours, and the
          // next of them is not due so soon after it.
          yield* holding.renew()
          yield* holding
            .renew()
            .pipe(Effect.timed, Effect.repeat({ until: ([took]) => Duration.isLessThan(took, Duration.seconds(1)) }))
          block(7500)
          // nothing but the clock can have told
          assert.isFalse(yield* holding.isHeld)
          const noticed = loss(yield* Effect.exit(holding.ensureHeld))
          assert.strictEqual(noticed.reason, "Expired")
          assert.isAtLeast(Duration.toMillis(noticed.late), 1000)
          assert.strictEqual(Duration.toMillis(yield* holding.remaining), 0)
          assert.strictEqual(loss(yield* Effect.exit(holding.awaitLost)), noticed)
          assert.strictEqual(loss(yield* Effect.exit(holding.renew("1 minute"))), noticed)
          const acquired = yield* waiter.told("acquired")
          assert.isTrue(BigInt(acquired.token) > holding.token)
          owner = acquired.owner
          return "done"
        })
        const exit = yield* section.pipe(Effect.uninterruptible, Lock.withLock("report"), Effect.exit, run)
        assert.strictEqual(loss(exit).reason, "Expired")
        yield* belongsTo(redis, "report", { owner })
      })
    )
  )

  it.live(
    "A section that blocks the event loop for longer than its lease fails, whatever it returns",
    onServer(({ server }) =>
      Effect.gen(function* () {
        const { run } = yield* client(server, { watchdogLeaseTime: 3000 })
        const exit = yield* Effect.sync(() => block(3500)).pipe(Lock.withLock("report"), Effect.exit, run)
        assert.strictEqual(loss(exit).reason, "Expired")
        assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("next"), "report")), "next")
      })
    )
  )

  it.live(
    "After an event loop was blocked for most of the lease, the overdue renewal comes in time",
    onServer(({ server }) =>
      Effect.gen(function* () {
        const { run } = yield* client(server, { watchdogLeaseTime: 12_000 })
        const section = Effect.gen(function* () {
          const { ensureHeld, remaining } = yield* Lock.currentHolding("report")
          block(6500)
          const left = Duration.toMillis(yield* remaining)
          assert.isBelow(left, 5500)
          while (Duration.toMillis(yield* remaining) <= left) yield* Effect.andThen(ensureHeld, Effect.sleep(10))
          return "done"
        })
        assert.strictEqual(yield* run(Lock.withLock(section, "report")), "done")
      })
    )
  )

  it.live(
    "An event loop that is blocked for longer than the command timeout fails no acquisition that Redis has answered meanwhile, and keeps its connection",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const { run } = yield* client(server, { commandTimeout: 200, watchdogLeaseTime: "1 minute" })
        yield* run(warmUp)
        const ids = Effect.promise(async () => String(await redis.client("LIST")).match(/^id=\d+/gm))
        const before = yield* ids
        for (let i = 0; i < 3; i++) {
          const section = yield* Effect.forkChild(run(Lock.withLock(Effect.succeed("done"), "report")), {
            startImmediately: true
          })
          block(700)
          assert.strictEqual(yield* Fiber.join(section), "done")
        }
        assert.deepStrictEqual(yield* ids, before)
      })
    )
  )

  it.live(
    "An event loop that is blocked for longer than the command timeout fails no acquisition over Effect's Redis (node-redis), either",
    onServer(({ server }) =>
      Effect.gen(function* () {
        const driver = Layer.provide(
          RedisDriver.layerRedisWith({ commandTimeout: 200 }),
          NodeRedis.layer({ url: server.url })
        )
        const { run } = yield* clientOf(locksOver(driver, { watchdogLeaseTime: "1 minute" }))
        yield* run(warmUp)
        for (let i = 0; i < 3; i++) {
          const section = yield* Effect.forkChild(run(Lock.withLock(Effect.succeed("done"), "report")), {
            startImmediately: true
          })
          // node-redis writes in a turn of its own
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          block(700)
          assert.strictEqual(yield* Fiber.join(section), "done")
        }
      })
    )
  )
})
