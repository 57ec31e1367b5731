/**
 * A database that is refused, or that the application leaves: no command may go to another one.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { Redis, type Command } from "ioredis"
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
  assert.include(error.message, "the client is in database 0, although it has selected 99: the server has refused that")
})

/** A client of the application that is connected. */
const connectedTo = Effect.fnUntraced(function* (url: string) {
  const shared = yield* bare({ url })
  yield* Effect.promise(() => shared.ping())
  return shared
})

/** How servers refuse CLIENT INFO: by the permissions, and before Redis 6.2. */
const refusals = [
  "NOPERM this user has no permissions to run the 'client|info' command",
  "ERR Unknown subcommand or wrong number of arguments for 'INFO'. Try CLIENT HELP.",
  "ERR Syntax error, try CLIENT (LIST | KILL | GETNAME | SETNAME | PAUSE | REPLY)",
  "ERR unknown command 'CLIENT'",
  // a proxy (Envoy)
  "unsupported command 'client'"
] as const

/** CLIENT INFO fails over this client from now on. */
const failInfo = (client: Redis, name: string, message: string) => {
  const send = client.sendCommand.bind(client)
  client.sendCommand = (command: Command, ...rest) =>
    command.name === "client" && String(command.args[0]) === "INFO"
      ? Promise.reject(Object.assign(new Error(message), { name }))
      : send(command, ...rest)
}

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

  testLive(
    `A layer over an application's client leaves it in the database that it has selected, and the locks are there, on the ${path} path`,
    function* () {
      const { redis, server } = yield* onServer()
      for (const [of, selected, infoRefusal] of [
        [0, undefined, undefined],
        [0, 3, undefined],
        [2, undefined, undefined],
        [2, 3, undefined],
        [2, 0, undefined],
        // it has never left it, or has come back
        [0, undefined, refusals[0]],
        [2, 0, refusals[0]]
      ] as const) {
        const shared = yield* connectedTo(`${server.url}/${of}`)
        if (selected !== undefined) yield* Effect.promise(() => shared.select(selected))
        if (infoRefusal !== undefined) failInfo(shared, "ReplyError", infoRefusal)
        const { run } = yield* clientOf(locksOver(IoRedis.fromClient(shared, { fastPath })))
        yield* Effect.promise(() => shared.set("of the application", 1))
        const keys = yield* run(
          Lock.withLock(
            Effect.promise(() => redis.info("keyspace")),
            "a"
          )
        )
        assert.match(keys, new RegExp(`^db${selected ?? of}:`, "m"))
        assert.lengthOf(keys.match(/^db\d+:/gm)!, 1)
        yield* Effect.promise(() => redis.flushall())
        shared.disconnect()
      }
    }
  )

  testLive(
    `A layer over an application's connected client is not built where it is not known to be in the database that it has selected, and leaves the client in its own, on the ${path} path`,
    function* () {
      const { redis, server } = yield* onServer()
      const over = Effect.fnUntraced(function* (
        url: string,
        prepare: (shared: Redis) => Promise<unknown>,
        database: number
      ) {
        const shared = yield* connectedTo(url)
        const id = yield* Effect.promise(() => shared.client("ID"))
        yield* Effect.promise(() => prepare(shared))
        const error = yield* refusal(IoRedis.fromClient(shared, { fastPath }))
        yield* Effect.promise(() => shared.ping())
        const clients = String(yield* Effect.promise(() => redis.client("LIST")))
        assert.match(clients, new RegExp(`^id=${id} .* db=${database} `, "m"))
        assert.instanceOf(error, RedisDriver.RedisDriverError)
        return error
      })
      const selectedUnseen = yield* over(`${server.url}/2`, (shared) => shared.call("SELECT", "4"), 4)
      assert.include(selectedUnseen.message, "is in database 4, although it has selected 2")
      assert.strictEqual(selectedUnseen.reason, "Failed")
      for (const of of [0, 2]) {
        for (const message of refusals) {
          const prepare = async (shared: Redis) => {
            await shared.select(3)
            failInfo(shared, "ReplyError", message)
          }
          const error = yield* over(`${server.url}/${of}`, prepare, 3)
          assert.include(error.message, `cannot tell whether the client is in database 3`)
          assert.include(error.message, "+client|info")
          assert.strictEqual(error.reason, message.startsWith("NOPERM") ? "NoPermission" : "Failed")
        }
      }
      for (const [name, message, reason] of [
        ["ReplyError", "BUSY Redis is busy running a script.", "Busy"],
        ["Error", "Command timed out", "TimedOut"],
        ["Error", "Connection is closed.", "ConnectionLost"]
      ] as const) {
        const error = yield* over(`${server.url}/2`, async (shared) => failInfo(shared, name, message), 2)
        assert.strictEqual(error.reason, reason)
      }
    }
  )

  testLive(
    `The locks stay in the database of an application's client that was about to reconnect when the layer was built, on the ${path} path`,
    function* () {
      const { redis, server } = yield* onServer()
      for (const database of [0, 3]) {
        const shared = yield* Effect.acquireRelease(
          // the test says when
          Effect.sync(() => new Redis(server.url, { retryStrategy: () => 3_600_000 }).on("error", () => {})),
          (shared) => Effect.sync(() => shared.disconnect())
        )
        yield* Effect.promise(async () => {
          await shared.select(database)
          await redis.client("KILL", "ID", await shared.client("ID"))
        })
        yield* eventually(
          "it is about to reconnect",
          () => shared.status,
          (status) => status === "reconnecting"
        )
        const { run } = yield* clientOf(locksOver(IoRedis.fromClient(shared, { fastPath })))
        yield* Effect.promise(() => shared.connect())
        const inside = Effect.promise(() => redis.info("keyspace"))
        assert.include(yield* run(Lock.withLock(inside, "a")), `db${database}:`)
        yield* Effect.promise(() => shared.select(5))
        const error = storeError(yield* Effect.exit(run(Lock.withLock(Effect.die("inside"), "a", { waitTime: 0 }))))
        assert.strictEqual(error.reason, "NotConnected")
        yield* Effect.promise(() => shared.select(database))
        assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("in"), "a", { waitTime: 0 })), "in")
        yield* Effect.promise(() => redis.flushall())
        shared.disconnect()
      }
    }
  )
}
