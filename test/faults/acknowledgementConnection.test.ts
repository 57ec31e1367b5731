import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Lock, RedisDriver } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually } from "../kit/eventually.ts"
import { replicated } from "../kit/server/replicated.ts"

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
