import { assert } from "@effect/vitest"
import { NodeRedis } from "@effect/platform-node"
import { Duration, Effect, Fiber, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { client, clientOf, locksOver } from "../kit/clients.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"
import { execFileSync } from "node:child_process"

/** Lets nothing else run in this process: no timer, no reply. */
const block = (millis: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis)

const untilAnswered = `
  const [port, millis] = process.argv.slice(1).map(Number)
  const socket = require("node:net").connect(port, "127.0.0.1", ask)
  function ask() { socket.write("INFO commandstats\\r\\n") }
  socket.on("data", (stats) => {
    if (performance.now() > millis && /cmdstat_evalsha:calls=/.test(stats)) process.exit()
    setTimeout(ask, 10)
  })
`

/**
 * {@link block} until the server has answered a script, and for longer than a command may take. Its counters have been reset. Throws where no
 * script has come.
 */
const blockUntilAnswered = ({ port }: { readonly port: number }) =>
  execFileSync(process.execPath, ["--eval", untilAnswered, String(port), "700"], { timeout: 60_000 })

/** Connects, and loads the scripts; again where a busy machine takes longer for that than a command may. */
const warmUp = Effect.retry(Lock.withLock(Effect.void, "report"), {
  while: (error) => error._tag === "LockStoreError" && (error.isTransient || error.workDone === true)
})

testLive("After an event loop was blocked for most of the lease, the overdue renewal comes in time", function* () {
  const { server } = yield* onServer()
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

testLive(
  "An event loop that is blocked for longer than the command timeout fails no acquisition that Redis has answered meanwhile, and keeps its connection",
  function* () {
    const { redis, server } = yield* onServer()
    const { run } = yield* client(server, { commandTimeout: 200, watchdogLeaseTime: "1 minute", label: "" })
    yield* run(warmUp)
    const ids = Effect.promise(async () => String(await redis.client("LIST")).match(/^id=\d+/gm))
    const before = yield* ids
    for (let i = 0; i < 3; i++) {
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      const section = yield* Effect.forkChild(run(Lock.withLock(Effect.succeed("done"), "report")), {
        startImmediately: true
      })
      blockUntilAnswered(server)
      assert.strictEqual(yield* Fiber.join(section), "done")
    }
    assert.deepStrictEqual(yield* ids, before)
  }
)

testLive(
  "An event loop that is blocked for longer than the command timeout fails no acquisition over Effect's Redis (node-redis), either",
  function* () {
    const { redis, server } = yield* onServer()
    const driver = Layer.provide(
      RedisDriver.layerRedisWith({ commandTimeout: 200 }),
      NodeRedis.layer({ url: server.url })
    )
    const { run } = yield* clientOf(locksOver(driver, { watchdogLeaseTime: "1 minute", label: "" }))
    yield* run(warmUp)
    for (let i = 0; i < 3; i++) {
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      const section = yield* Effect.forkChild(run(Lock.withLock(Effect.succeed("done"), "report")), {
        startImmediately: true
      })
      // node-redis writes in a turn of its own
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      blockUntilAnswered(server)
      assert.strictEqual(yield* Fiber.join(section), "done")
    }
  }
)
