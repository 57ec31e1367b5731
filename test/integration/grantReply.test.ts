/**
 * What the script of an acquisition replies when it grants the lock, and the token that its store reads from that.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LockStore, RedisDriver } from "effect-redis-lock"
import { runOperation } from "../kit/storeOperations.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { testLive } from "../kit/test.ts"

/** A store over Redis, and the replies of its scripts. */
const observedStore = Effect.gen(function* () {
  const replies: Array<RedisDriver.Reply> = []
  const driver = Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (driver) => ({
      ...driver,
      eval: (...asked: Parameters<typeof driver.eval>) =>
        Effect.tap(driver.eval(...asked), (reply) => Effect.sync(() => replies.push(reply)))
    }))
  ).pipe(Layer.provide(IoRedis.layer({ url: redisUrl })))
  const context = yield* Layer.build(Layer.provide(LockStore.layerRedis, driver))
  return { replies, ...(yield* Effect.provideContext(LockStore.LockStore, context)) }
})

/** A lower bound a minute ahead. */
const ahead = () => (Date.now() + 60_000) * 1000

for (const [operation, keys, args] of [
  ["lock/acquire", ["lock", "token"], (bound: number | "") => ["owner", 1000, 60_000, bound]],
  [
    "write_lock/acquire",
    ["lock", "token", "reads", "places"],
    (bound: number | "") => ["owner", 1000, 60_000, bound, "", 0]
  ]
] as const) {
  testLive(
    `A grant by ${operation} replies with the server's time alone if its token follows from that and the bound`,
    function* () {
      const store = yield* observedStore
      const acquire = (name: string, bound: number | "") =>
        Effect.map(
          runOperation(
            store,
            operation,
            keys.map((key) => `grantReply:${name}:{${run}}:${key}`),
            args(bound)
          ),
          (token) => ({ token: token as number, reply: store.replies.at(-1) })
        )
      const run = crypto.randomUUID()

      const free = yield* acquire("unbounded", "")
      assert.strictEqual(free.reply, free.token)

      const bound = ahead()
      const bounded = yield* acquire("bounded", bound)
      assert.strictEqual(bounded.token, bound)
      assert.isBelow(bounded.reply as number, bound)

      // below the server's time a bound changes nothing
      const low = yield* acquire("low", 1_000_000_000_000_000)
      assert.strictEqual(low.reply, low.token)

      // sent twice: the token that was granted, which only Redis knows
      const again = yield* acquire("bounded", bound + 1)
      assert.strictEqual(again.token, bound)
      assert.strictEqual((again.reply as ReadonlyArray<unknown>)[0], "granted")

      const serverMicros = store.serverMicros("grantReply")!
      assert.isBelow(Math.abs(serverMicros - Date.now() * 1000), 30_000_000, "the bound is not taken for a time")
    }
  )
}

testLive(
  "A grant whose token is higher than its bound, because of the last one, tells the token and the time",
  function* () {
    const store = yield* observedStore
    const lock = `grantReply:{${crypto.randomUUID()}}`
    const keys = [lock, `${lock}:token`]
    const bound = ahead()
    assert.strictEqual(yield* runOperation(store, "lock/acquire", keys, ["a", 1000, 60_000, bound]), bound)
    yield* runOperation(store, "lock/release", [lock, `${lock}:channel`], ["a", "PUBLISH"])
    assert.strictEqual(yield* runOperation(store, "lock/acquire", keys, ["b", 1000, 60_000, bound]), bound + 1)
    assert.deepStrictEqual((store.replies.at(-1) as ReadonlyArray<unknown>).slice(0, 2), ["granted", bound + 1])
  }
)
