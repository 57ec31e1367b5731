/**
 * What the log says of connections, and what commands are told while there is none.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Schedule } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { hasFastPath } from "../kit/commandPath.ts"
import { clientOf, locksOver } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually, until } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected, subscribers } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const section = Lock.withLock(Effect.succeed("done"), "report")

const impatient = { retryStrategy: () => 20 }

testLive(
  "A connection that is lost, refused and back is logged once each, however often it is tried meanwhile; commands are told why",
  function* () {
    const { proxy } = yield* behindProxy()
    const log = recording()
    let attempts = 0
    const retryStrategy = () => {
      attempts++
      return impatient.retryStrategy()
    }
    const mine = yield* Effect.provide(
      clientOf(locksOver(IoRedis.layer({ url: proxy.url, ioredis: { retryStrategy } }))),
      log.layer
    )
    assert.strictEqual(yield* mine.run(section), "done")
    assert.deepStrictEqual(log.logged(), [])
    yield* proxy.cut
    const error = yield* eventually(
      "a command is told that the connection is refused",
      // who waits is told nothing: it may pass
      async () => storeError(await Effect.runPromise(Effect.exit(mine.run(Lock.isLocked("report"))))),
      ({ message }) => message.includes("ECONNREFUSED")
    )
    assert.strictEqual(error.reason, "NotConnected")
    assert.isTrue(error.isTransient)
    assert.include(String((error.cause as Error).cause), "ECONNREFUSED")
    const enough = attempts + 5
    yield* until("it has been tried several times more", () => attempts > enough)
    yield* proxy.restore
    yield* connected(mine)
    yield* eventually("all is logged", log.logged, (lines) => lines.length === 3)
    assert.deepStrictEqual(log.logged(), ["Warn lost commands", "Warn refused commands", "Info restored commands"])
    const [lost, refused, restored] = log.lines
    const server = proxy.url.slice("redis://".length)
    assert.deepInclude(lost, { server, reason: "ConnectionLost" })
    assert.deepInclude(refused, { server, reason: "ConnectionRefused", error: `connect ECONNREFUSED ${server}` })
    assert.include(refused!.message, `${server}: connect ECONNREFUSED`)
    assert.isAtLeast(restored!["outageMillis"] as number, 5 * 15)

    yield* proxy.cut
    yield* eventually("it is lost again", log.logged, (lines) => lines.length === 5)
    yield* proxy.restore
    yield* connected(mine)
    yield* eventually("and back", log.logged, (lines) => lines.length === 6)
  }
)

testLive("A connection for subscriptions is logged as well", function* () {
  const { proxy, redis } = yield* behindProxy()
  const log = recording()
  yield* Effect.promise(() => redis.hset("report", "other", "1"))
  const mine = yield* Effect.provide(
    clientOf(locksOver(IoRedis.layer({ url: proxy.url, ioredis: impatient }))),
    log.layer
  )
  yield* Effect.forkScoped(mine.run(section), { startImmediately: true })
  yield* subscribers(redis, "report", 1)
  yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "pubsub"))
  yield* eventually("both are logged", log.logged, (lines) => lines.length === 2)
  assert.deepStrictEqual(log.logged(), ["Warn lost subscriptions", "Info restored subscriptions"])
  yield* subscribers(redis, "report", 1)
  yield* Effect.promise(() => redis.del("report"))
})

testLive("A connection that is given up while it is being opened is not logged as refused", function* () {
  const { proxy } = yield* behindProxy()
  const log = recording()
  const driver = yield* Effect.provide(Layer.build(IoRedis.layer({ url: proxy.url })), log.layer)
  const { sendBlocking } = Context.get(driver, RedisDriver.RedisDriver)
  const greeted = yield* proxy.stallRepliesAfter("setname")
  const asking = yield* Effect.forkScoped(sendBlocking!("key", [["PING"]], 60_000), { startImmediately: true })
  yield* greeted
  yield* Fiber.interrupt(asking)
  yield* proxy.resume
  yield* eventually("it is closed", proxy.connections, (connections) => connections === 1)
  assert.deepStrictEqual(log.logged(), [])
})

testLive("A rotated password fails commands with NotAuthenticated until it is right again", function* () {
  const server = yield* RedisServer.start()
  const redis = yield* bare(server)
  const password = (text: string) =>
    Effect.promise(() => redis.call("ACL", "SETUSER", "locks", "resetpass", `>${text}`))
  yield* Effect.promise(() => redis.call("ACL", "SETUSER", "locks", "on", ">old", "~*", "&*", "+@all"))
  const log = recording()
  const url = `redis://locks:old@${server.host}:${server.port}`
  const mine = yield* Effect.provide(clientOf(locksOver(IoRedis.layer({ url, ioredis: impatient }))), log.layer)
  assert.strictEqual(yield* mine.run(section), "done")
  yield* password("new")
  // what is connected stays so
  assert.strictEqual(yield* mine.run(section), "done")
  yield* Effect.promise(() => redis.call("CLIENT", "KILL", "USER", "locks"))
  const error = yield* eventually(
    "a command is told that the password is wrong",
    async () => storeError(await Effect.runPromise(Effect.exit(mine.run(Lock.isLocked("report"))))),
    ({ reason }) => reason === "NotAuthenticated"
  )
  assert.isFalse(error.isTransient)
  assert.include(error.message, "WRONGPASS")
  yield* Effect.sleep(200)
  assert.deepStrictEqual(log.logged(), ["Warn lost commands", "Warn refused commands"])
  assert.deepInclude(log.lines[1], { reason: "NotAuthenticated" })
  yield* password("old")
  yield* connected(mine)
  assert.strictEqual(yield* mine.run(section), "done")
  yield* eventually("that it is back is logged", log.logged, (lines) => lines.length === 3)
})

// over ioredis 5 RedisServer.start does not see that a server wants a password
const maybe = it.live.skipIf(!hasFastPath)
maybe("A server that comes back with another password is logged as refused once for each reason", () =>
  Effect.gen(function* () {
    const server = yield* RedisServer.start()
    const log = recording()
    const url = `redis://default:any@${server.host}:${server.port}`
    const redis = yield* bare(server)
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "default", ">any"))
    const mine = yield* Effect.provide(clientOf(locksOver(IoRedis.layer({ url, ioredis: impatient }))), log.layer)
    assert.strictEqual(yield* mine.run(section), "done")
    yield* server.kill
    yield* eventually("that it is refused is logged", log.logged, (lines) => lines.length === 2)
    // for a moment the port may serve someone else's outgoing connection
    yield* Effect.retry(RedisServer.start({ port: server.port, args: ["--requirepass", "other"] }), {
      while: ({ reason }) => reason === "PortTaken",
      schedule: Schedule.spaced(100),
      times: 20
    })
    yield* eventually("that the password is wrong is logged", log.logged, (lines) => lines.length === 3)
    assert.deepStrictEqual(
      log.lines.map(({ reason }) => reason),
      ["ConnectionLost", "ConnectionRefused", "NotAuthenticated"]
    )
  })
)

testLive(
  "Lost connections to a cluster's nodes are logged, and a rotated password is a reason that lasts",
  function* () {
    const cluster = yield* RedisCluster.start()
    const nodes = yield* Effect.forEach(cluster.urls, (url) => bare({ url }))
    const onAll = (...args: readonly [string, ...ReadonlyArray<string>]) =>
      Effect.promise(() => Promise.all(nodes.map((node) => node.call(...(args as [string])))))
    yield* onAll("ACL", "SETUSER", "locks", "on", ">old", "~*", "&*", "+@all")
    const log = recording()
    const urls = cluster.urls.map((url) => url.replace("://", "://locks:old@"))
    const mine = yield* Effect.provide(clientOf(locksOver(IoRedis.layerCluster({ nodes: urls }))), log.layer)
    const names = Array.from({ length: 12 }, (_, i) => `report:${i}`)
    const all = Effect.forEach(names, (name) => Effect.exit(mine.run(Lock.withLock(Effect.succeed("done"), name))))
    yield* all
    assert.deepStrictEqual(log.logged(), [])
    yield* onAll("ACL", "SETUSER", "locks", "resetpass", ">new")
    yield* onAll("CLIENT", "KILL", "USER", "locks")
    const exits = yield* eventually(
      "all commands are told that the password is wrong",
      () => Effect.runPromise(all),
      (exits) => exits.every((exit) => exit._tag === "Failure" && storeError(exit).reason === "NotAuthenticated")
    )
    for (const exit of exits) assert.isFalse(storeError(exit).isTransient)
    assert.strictEqual(log.lines.filter(({ event }) => event === "lost").length, 3)
    const refused = log.lines.filter(({ event }) => event === "refused")
    assert.isNotEmpty(refused)
    for (const { reason } of refused) assert.strictEqual(reason, "NotAuthenticated")
    yield* onAll("ACL", "SETUSER", "locks", "resetpass", ">old")
    yield* eventually(
      "the locks are had again",
      () => Effect.runPromise(all),
      (exits) => exits.every((exit) => exit._tag === "Success")
    )
  }
)
