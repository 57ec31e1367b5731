import { NodeRedis } from "@effect/platform-node"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { createHash } from "node:crypto"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { commandsRun } from "../kit/server/commandsOf.ts"
import { renewed } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

describe("SCRIPT FLUSH in a loop", () => {
  testLive(
    "SCRIPT FLUSH in a loop costs no section: two clients count to exactly 400, and a long section stays renewed",
    function* () {
      const { redis, server } = yield* onServer()
      let flushes = 0
      const flushing = yield* Effect.promise(() => redis.script("FLUSH", "SYNC")).pipe(
        Effect.andThen(Effect.sync(() => flushes++)),
        Effect.forever,
        Effect.forkScoped
      )
      const one = yield* client(server, { watchdogLeaseTime: "6 seconds" })
      const other = yield* client(server)
      const counter = yield* bare(server)
      const section = Effect.gen(function* () {
        const seen = Number(yield* Effect.promise(() => counter.get("count")))
        yield* Effect.promise(() => counter.set("count", seen + 1))
      }).pipe(Lock.withLock("ledger"))
      const counting = Effect.forEach(Array.from({ length: 4 }), () => Effect.repeat(section, { times: 49 }), {
        concurrency: "unbounded",
        discard: true
      })
      const long = renewed(counter, "report", 2).pipe(Lock.withLock("report"))
      yield* Effect.all([one.run(counting), other.run(counting), one.run(long)], { concurrency: "unbounded" })
      assert.isUndefined(flushing.pollUnsafe())
      assert.isAbove(flushes, 100)
      assert.strictEqual(yield* Effect.promise(() => counter.getdel("count")), "400")
    }
  )
})

/** Appends to a list, in two ways that Redis tells apart. */
const appending = (comment: string): RedisDriver.RedisScript => {
  const lua = `-- ${comment.padEnd(2000, ".")}\nreturn redis.call("rpush", KEYS[1], ARGV[1])`
  return { name: comment, lua, sha1: createHash("sha1").update(lua).digest("hex") }
}
const [one, other] = ["one", "other"].map(appending) as [RedisDriver.RedisScript, RedisDriver.RedisScript]

const received = (redis: Redis) =>
  Effect.promise(async () => Number(/total_net_input_bytes:(\d+)/.exec(await redis.info("stats"))![1]))

const drivers: Record<string, (url: string) => Layer.Layer<RedisDriver.RedisDriver, unknown>> = {
  ioredis: (url: string) => IoRedis.layer({ url, commandTimeout: "1 minute", ioredis: { retryStrategy: () => 20 } }),
  "Effect's Redis (node-redis)": (url: string) =>
    Layer.provide(
      RedisDriver.layerRedisWith({ commandTimeout: "1 minute" }),
      // node-redis has a time-out of its own, five seconds, for commands that it has not sent yet
      NodeRedis.layer({ url, commandOptions: { timeout: 60_000 } })
    )
}

describe.each(Object.entries(drivers))("a script that the server does not know: %s", (_, layerOf) => {
  const driverOf = (url: string) =>
    Effect.map(Layer.build(Layer.fresh(layerOf(url))), (context) => Context.get(context, RedisDriver.RedisDriver))

  testLive(
    "A script that the server does not know is sent once, however many callers want to run it at the same time",
    function* () {
      const { redis, server } = yield* onServer()
      const driver = yield* driverOf(server.url)
      for (let round = 0; round < 2; round++) {
        const [before, evals] = yield* Effect.all([received(redis), commandsRun(redis, "eval")])
        yield* Effect.forEach(
          Array.from({ length: 1000 }, (_, i) => i),
          (i) => driver.eval(one, ["list"], [i]),
          { concurrency: "unbounded", discard: true }
        )
        const [after, evalsNow] = yield* Effect.all([received(redis), commandsRun(redis, "eval")])
        assert.strictEqual(evalsNow - evals, 1)
        // twice a line of some 90 bytes each; with its text each time it would be two millions
        assert.isBelow(after - before, 500_000)
        yield* Effect.promise(() => redis.script("FLUSH", "SYNC"))
      }
      assert.strictEqual(yield* Effect.promise(() => redis.llen("list")), 2000)
      yield* Effect.promise(() => redis.del("list"))
    }
  )
})

describe("a server that was restarted and has forgotten all scripts", () => {
  const driverOf = (url: string) =>
    Effect.map(Layer.build(Layer.fresh(drivers["ioredis"]!(url))), (context) =>
      Context.get(context, RedisDriver.RedisDriver)
    )

  testLive(
    "A restarted server is sent each script with its first use: no command costs two round trips, and they stay in the order of the calls",
    function* () {
      const { redis, server } = yield* onServer()
      const driver = yield* driverOf(server.url)
      for (const script of [one, other]) yield* driver.eval(script, ["list"], [0])
      yield* server.restart
      yield* eventually(
        "it is connected again",
        () => Effect.runPromise(Effect.result(driver.eval(one, ["warm"], [0]))),
        (result) => result._tag === "Success"
      )
      const numbers = Array.from({ length: 500 }, (_, i) => i)
      yield* Effect.forEach(numbers, (i) => driver.eval(i % 3 === 0 ? one : other, ["list"], [i]), {
        concurrency: "unbounded",
        discard: true
      })
      assert.deepStrictEqual(yield* Effect.promise(() => redis.lrange("list", 0, -1)), numbers.map(String))
      assert.strictEqual(yield* commandsRun(redis, "eval"), 2)
      assert.notInclude(yield* Effect.promise(() => redis.info("errorstats")), "NOSCRIPT")
      yield* Effect.promise(() => redis.flushall())
    }
  )
})
