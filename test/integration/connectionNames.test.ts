import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, RedisDriver, RedisLock } from "effect-redis-lock"
import { client, clientOf } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { metricValues, withOwnMetrics } from "../kit/metrics.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { onServer } from "../kit/server/onServer.ts"
import { expectWarning } from "../run/logs.ts"
import type { Redis } from "ioredis"
import { testLive } from "../kit/test.ts"

const lost = /^Lost the connection to Redis; connecting again\./

/** The names of the connections that have one. */
const namesOn = async (redis: Redis): Promise<ReadonlyArray<string>> =>
  [...((await redis.client("LIST")) as string).matchAll(/ name=(\S+)/g)].map(([, name]) => name!)

testLive("All connections of a client bear its label, without spaces, also after a reconnect", function* () {
  const { redis, server } = yield* onServer()
  expectWarning(lost)
  const mine = yield* client(server, { label: "payments of web 3" })
  const holder = yield* enter(yield* client(server, { label: "" }), "report")
  const waiter = yield* queueUp(mine, "report")
  const both = (names: ReadonlyArray<string>) =>
    names.length === 2 && names.every((name) => name === "payments-of-web-3")
  yield* eventually("commands and subscriptions are named", () => namesOn(redis), both)
  yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
  yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "pubsub"))
  yield* eventually("they are again", () => namesOn(redis), both)
  yield* holder.end
  yield* (yield* waiter.entered).end
})

testLive(
  "Connections without a label bear that of the process, a name of ioredis wins, and an empty label leaves them without",
  function* () {
    const {
      redis,
      server: { url }
    } = yield* onServer()
    const own = yield* RedisDriver.connectionName()
    for (const [options, expected] of [
      [{ url }, [own]],
      [{ url, label: "mine", ioredis: { connectionName: "theirs" } }, ["theirs"]],
      [{ url, label: "" }, []]
    ] as const) {
      yield* Layer.build(IoRedis.layer(options)).pipe(
        Effect.andThen(
          eventually(
            "it is named",
            () => namesOn(redis),
            (names) => names.join() === expected.join()
          )
        ),
        Effect.scoped
      )
    }
    yield* Layer.build(IoRedis.layerRedisLock({ urls: [url], label: "a b" })).pipe(
      Effect.andThen(
        eventually(
          "it is named",
          () => namesOn(redis),
          (names) => names.join() === "a-b"
        )
      ),
      Effect.scoped
    )
    const error = yield* Effect.flip(Effect.scoped(Layer.build(IoRedis.layer({ url, label: "x".repeat(300) }))))
    assert.strictEqual(error._tag, "InvalidLockOptions")
  }
)

testLive("A user that may not name its connections uses locks all the same", function* () {
  const { redis, server } = yield* onServer()
  yield* Effect.promise(() =>
    redis.acl("SETUSER", "locks", "reset", "on", ">secret", "~*", "&*", "+@all", "-client|setname")
  )
  const { run } = yield* client({ url: `redis://locks:secret@${server.host}:${server.port}` })
  assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("done"), "report")), "done")
  assert.deepStrictEqual(yield* Effect.promise(() => namesOn(redis)), [])
})

testLive("A connection that was lost and is back is counted, and before that the count is zero", function* () {
  yield* Effect.gen(function* () {
    const { redis, server } = yield* onServer()
    expectWarning(lost)
    const driver = IoRedis.layer({ url: server.url, ioredis: { retryStrategy: () => 50 } })
    const mine = yield* clientOf(Layer.provide(RedisLock.layer(), driver))
    const counts = Effect.map(metricValues, (values) =>
      ["commands", "subscriptions"].map((name) => values[`redis_lock.reconnects lock.connection=${name}`])
    )
    assert.deepStrictEqual(yield* counts, [0, 0])
    yield* mine.run(Lock.withLock(Effect.void, "report"))
    yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
    yield* eventually("it is counted", counts, ([commands]) => commands === 1)
  }).pipe(withOwnMetrics)
})
