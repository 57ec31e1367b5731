/**
 * A database that is refused, or that the application leaves: no command may go to another one.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { Redis } from "ioredis"
import { client, clientOf, clientOver, locksOver } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const section = Lock.withLock(Effect.succeed("done"), "report")

const refusal = <A, E>(layer: Layer.Layer<A, E>) => Effect.flip(Effect.scoped(Layer.build(layer)))

/** No key in any database, whoever tried. */
const nothingAnywhere = (redis: Redis) =>
  Effect.promise(async () => assert.notMatch(await redis.info("keyspace"), /^db\d+:/m))

testLive("A database that does not exist fails the building of the layer, and the error says so", function* () {
  const { redis, server } = yield* onServer()
  for (const layer of [
    IoRedis.layer({ url: `${server.url}/99` }),
    IoRedis.layer({ url: server.url, ioredis: { db: 99 } }),
    IoRedis.layer({ url: `${server.url}/99`, ioredis: { protocol: 2 } }),
    IoRedis.layer({ url: `${server.url}/99`, ioredis: { enableReadyCheck: false } })
  ]) {
    const error = yield* refusal(layer)
    assert.instanceOf(error, RedisDriver.RedisDriverError)
    assert.include(error.message, "cannot select database 99: ERR DB index is out of range")
  }
  yield* nothingAnywhere(redis)
})

testLive("A database that the user may not SELECT fails the building of the layer with NoPermission", function* () {
  const { redis, server } = yield* onServer()
  yield* Effect.promise(() => redis.acl("SETUSER", "locks", "on", ">pw", "~*", "&*", "+@all", "-select"))
  const error = yield* refusal(IoRedis.layer({ url: `redis://locks:pw@${server.host}:${server.port}/3` }))
  assert.deepInclude(error, { reason: "NoPermission" })
  assert.include(error.message, "cannot select database 3: NOPERM")
  yield* nothingAnywhere(redis)
})

testLive("A database that does not exist fails the layer behind Sentinel, too", function* () {
  const site = yield* RedisSentinel.start()
  const sentinels = site.sentinels.map(({ url }) => url)
  const error = yield* refusal(IoRedis.layerSentinel({ sentinels, name: site.name, ioredis: { db: 99 } }))
  assert.include(error.message, "cannot select database 99: ERR DB index is out of range")
})

testLive(
  "When the right to a database is withdrawn, commands fail with NoPermission after a reconnect until it is given back, and go to no other database, also over the application's own client",
  function* () {
    const { redis, server } = yield* onServer()
    yield* Effect.promise(() => redis.acl("SETUSER", "locks", "on", ">pw", "~*", "&*", "+@all"))
    const url = `redis://locks:pw@${server.host}:${server.port}/3`
    const ours = yield* client({ url })
    const theirs = yield* clientOver(yield* bare({ url }))
    for (const { run } of [ours, theirs]) assert.strictEqual(yield* run(section), "done")

    yield* Effect.promise(() => redis.acl("SETUSER", "locks", "-select"))
    yield* Effect.promise(() => redis.client("KILL", "USER", "locks"))
    for (const { run } of [ours, theirs]) {
      const error = yield* eventually(
        "the lock is refused because of the database",
        async () => storeError(await Effect.runPromise(Effect.exit(run(section)))),
        ({ reason }) => reason !== "ConnectionLost" && reason !== "NotConnected"
      )
      assert.strictEqual(error.reason, "NoPermission")
      assert.isFalse(error.isTransient)
      assert.include(error.message, "cannot select database 3: NOPERM")
    }
    assert.notMatch(yield* Effect.promise(() => redis.info("keyspace")), /^db0:/m)

    yield* Effect.promise(() => redis.acl("SETUSER", "locks", "+select"))
    yield* connected(ours)
    assert.strictEqual(yield* ours.run(section), "done")
    // theirs is connected, in another database, and not ours to close
    yield* Effect.promise(() => redis.client("KILL", "USER", "locks"))
    yield* connected(theirs)
    assert.strictEqual(yield* theirs.run(section), "done")
    assert.notMatch(yield* Effect.promise(() => redis.info("keyspace")), /^db0:/m)
    yield* Effect.promise(() => redis.flushall())
  }
)

testLive(
  "A connection for subscriptions that the server refuses the database is given up, and the waiter falls back to asking",
  function* () {
    const { redis, server } = yield* onServer()
    yield* Effect.promise(() => redis.acl("SETUSER", "locks", "on", ">pw", "~*", "&*", "+@all"))
    const url = `redis://locks:pw@${server.host}:${server.port}/3`
    const holder = yield* enter(yield* client({ url }), "report")
    const waiting = yield* client({ url })
    yield* Effect.promise(() => redis.acl("SETUSER", "locks", "-select"))
    const waiter = yield* queueUp(waiting, "report")
    const refused = () => redis.call("ACL", "LOG") as Promise<ReadonlyArray<unknown>>
    yield* eventually("its SELECT was refused", refused, (log) => JSON.stringify(log).includes("select"))
    assert.deepStrictEqual(yield* Effect.promise(() => redis.pubsub("CHANNELS")), [])
    yield* holder.end
    const next = yield* waiter.entered
    yield* next.finish
    yield* Effect.promise(() => redis.flushall())
  }
)

testLive("An application's own client that was refused its database fails the building of the layer", function* () {
  const { server } = yield* onServer()
  const redis = yield* Effect.acquireRelease(
    Effect.sync(() => new Redis(`${server.url}/99`).on("error", () => {})),
    (redis) => Effect.sync(() => redis.disconnect())
  )
  yield* eventually(
    "it is connected",
    () => redis.status,
    (status) => status === "ready"
  )
  const error = yield* refusal(IoRedis.fromClient(redis))
  assert.include(error.message, "ERR DB index is out of range")
})

for (const fastPath of [true, false]) {
  const path = fastPath ? "fast" : "plain"
  testLive(
    `A script that the server does not know is not sent again into another database that the application has selected since, on the ${path} path`,
    function* () {
      const server = yield* RedisServer.start()
      const shared = yield* bare({ url: `${server.url}/3` })
      const { run } = yield* clientOf(locksOver(IoRedis.fromClient(shared, { fastPath })))
      // which teaches it the server's clock: later commands are not refused for that
      yield* run(Lock.withLock(Effect.void, "a"))
      yield* Effect.promise(() => shared.script("FLUSH"))
      const asked = yield* Effect.forkChild(run(Lock.withLock(Effect.die("inside"), "a", { waitTime: 0 })), {
        startImmediately: true
      })
      yield* Effect.promise(() => shared.select(4))
      const error = storeError(yield* Fiber.await(asked))
      assert.strictEqual(error.reason, "NotConnected")
      assert.strictEqual(yield* Effect.promise(() => shared.exists("a")), 0)
      yield* Effect.promise(() => shared.select(3))
      assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("in"), "a", { waitTime: 0 })), "in")
    }
  )
}
