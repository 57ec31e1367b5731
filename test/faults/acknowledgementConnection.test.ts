import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { mastersOf, TheCluster } from "../kit/server/cluster.ts"
import { replicated } from "../kit/server/replicated.ts"

/** Ends the other connections of the same client, and waits until this one is closed as well. */
const isClosedWithOthers = Effect.fnUntraced(function* (redis: Redis, id: unknown) {
  const ours = async () =>
    String(await redis.client("LIST"))
      .split("\n")
      .filter((line) => line.includes(" name=ours "))
      .map((line) => Number(/^id=(\d+)/.exec(line)![1]))
  const others = (yield* Effect.promise(ours)).filter((each) => each !== id)
  assert.isNotEmpty(others)
  yield* Effect.promise(() => Promise.all(others.map((each) => redis.client("KILL", "ID", each))))
  yield* eventually("the connection for grants is closed", ours, (open) => !open.includes(Number(id)))
})

const waitsOf = (clients: string) => /id=(\d+) .* cmd=wait /.exec(clients)?.[1]

it.live("A connection on which a reply did not come in time is not used again, as it may still be blocked", () =>
  Effect.gen(function* () {
    const server = yield* RedisServer.start()
    const driver = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url })))
    const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
    // there is no replica
    const error = yield* Effect.flip(send("a", [["WAIT", 1, 0]], 1000))
    assert.include(String(error.cause), "timed out")
    assert.deepStrictEqual(yield* send("a", [["PING"]], 20_000), ["PONG"])
  }).pipe(Effect.scoped)
)

it.live(
  "A connection on which grants wait is replaced when it breaks, and the log does not say that it is gone for good",
  () =>
    Effect.gen(function* () {
      const { master } = yield* replicated(1)
      const record = recording()
      yield* Effect.gen(function* () {
        const { run } = yield* client(master.server, { acknowledge: { replicas: 1, within: "2 minutes" } })
        yield* run(Lock.withLock(Effect.void, "a"))
        const clients = () => master.redis.client("LIST") as Promise<string>
        const id = waitsOf(yield* Effect.promise(clients))!
        yield* Effect.promise(() => master.redis.client("KILL", "ID", id))
        yield* eventually("it is gone", clients, (list) => waitsOf(list) === undefined)
        yield* run(Lock.withLock(Effect.void, "b"))
        assert.isDefined(waitsOf(yield* Effect.promise(clients)))
      }).pipe(Effect.provide(record.layer), Effect.scoped)
      assert.deepStrictEqual(record.logged(), [])
    }).pipe(Effect.scoped)
)

it.live(
  "An idle connection for grants is closed when the one for commands is lost, as its address may lead elsewhere by then",
  () =>
    Effect.gen(function* () {
      const server = yield* RedisServer.start()
      const redis = yield* bare(server)
      const driver = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url, label: "ours" })))
      const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
      const [id] = yield* send("a", [["CLIENT", "ID"]], 20_000)
      yield* isClosedWithOthers(redis, id)
      assert.notDeepEqual(yield* send("a", [["CLIENT", "ID"]], 20_000), [id!])
    }).pipe(Effect.scoped)
)

it.layer(TheCluster.layer(), { excludeTestServices: true })("on a cluster", (it) => {
  it.effect("An idle connection for grants to a node is closed when the one for commands to it is lost", () =>
    Effect.gen(function* () {
      const cluster = yield* TheCluster
      const nodes = { nodes: cluster.urls, connectTimeout: "1 minute", label: "ours" } as const
      const driver = yield* Layer.build(Layer.fresh(IoRedis.layerCluster(nodes)))
      const { sendBlocking, eval: evaluate } = Context.get(driver, RedisDriver.RedisDriver)
      const lock = freshName()
      const { owner } = yield* mastersOf(cluster, lock)
      // its connection for commands is opened when it is first needed
      yield* evaluate({ name: "test", sha1: "0".repeat(40), lua: "return 1" }, [lock], [])
      const [id] = yield* sendBlocking!(lock, [["CLIENT", "ID"]], 20_000)
      yield* isClosedWithOthers(yield* bare(owner), id)
    }).pipe(Effect.scoped)
  )
})
