/**
 * Programs written for one server, on a quorum of real ones.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { clientOf, locks } from "../kit/clients.ts"
import { eventually, until } from "../kit/eventually.ts"
import { lockKey } from "../kit/server/conditions.ts"
import { keyEverywhere, onServers, type Place } from "./quorumSite.ts"
import { testLive } from "../kit/test.ts"

// long enough for a busy machine
const options = { watchdogLeaseTime: "5 seconds", fallbackInterval: "200 millis" } as const

const locksAt = ({ server }: Place) => locks(server, options)

const quorumAt = (places: ReadonlyArray<Place>, layerAt = locksAt) =>
  RedisLock.layerQuorum(places.map(layerAt), { memberTimeout: "2 seconds" })

const connections = async ({ redis }: Place) => ((await redis.client("LIST")) as string).trim().split("\n").length

describe("the layer of a quorum", { concurrent: true }, () => {
  testLive(
    "The layer of a quorum is built while one server is absent, which joins later and leaves no connection of its failed attempts",
    function* () {
      const places = yield* onServers(3)
      const absent = places[2]!
      yield* absent.server.kill
      let attempts = 0
      const counting = (place: Place) =>
        Layer.unwrap(
          Effect.sync(() => {
            if (place === absent) attempts++
            return locksAt(place)
          })
        )
      const quorum = yield* clientOf(quorumAt(places, counting))
      assert.strictEqual(yield* quorum.run(Lock.withLock(Effect.succeed("two of three"), "ledger")), "two of three")
      yield* until("several attempts to reach it have failed", () => attempts > 3)
      yield* absent.server.restart
      yield* eventually(
        "it takes part",
        async () => {
          const held = quorum.run(Effect.promise(() => absent.redis.exists("ledger")).pipe(Lock.withLock("ledger")))
          return Effect.runPromise(held)
        },
        (exists) => exists === 1
      )
      // time for a connection too many
      yield* Effect.sleep("500 millis")
      yield* eventually(
        "it has the observer's connection, and as many as everywhere else",
        () => Promise.all([connections(absent), connections(places[0]!)]),
        ([joined, first]) => joined === first
      )
      // now the others may go one by one
      yield* places[0]!.server.kill
      assert.strictEqual(yield* quorum.run(Lock.withLock(Effect.succeed("still"), "ledger")), "still")
    }
  )

  testLive("The layer of a quorum cannot be built on a minority", function* () {
    const places = yield* onServers(3)
    yield* places[0]!.server.kill
    yield* places[1]!.server.kill
    const error = yield* Effect.flip(Effect.scoped(Layer.build(quorumAt(places))))
    assert.strictEqual(error._tag, "RedisDriverError")
  })

  testLive(
    "The layer of a quorum excludes single servers' locks of the same name if a majority has them",
    function* () {
      const places = yield* onServers(3)
      const quorum = yield* clientOf(quorumAt(places))
      const single = yield* clientOf(locks(places[0]!.server, options))
      const got = Lock.withLockIfAvailable(Effect.succeed("in"), "ledger")
      assert.strictEqual(
        yield* single.run(
          Lock.withLock(
            // it waits for the two others, should one be slow
            Effect.promise(() => Effect.runPromise(quorum.run(Lock.withLock(Effect.succeed("in"), "ledger")))),
            "ledger"
          )
        ),
        "in"
      )
      assert.deepStrictEqual(
        yield* quorum.run(
          // a majority without this server may have granted it first
          lockKey(places[0]!.redis, "ledger", "there").pipe(
            Effect.andThen(Effect.promise(() => Effect.runPromise(single.run(got)))),
            Lock.withLock("ledger")
          )
        ),
        Option.none()
      )
      yield* keyEverywhere(places, "ledger", "gone")
    }
  )

  testLive(
    "The layer of a quorum that lacks a majority names all members that cannot be reached, each with its problem",
    function* () {
      const server = yield* RedisServer.start()
      const members = [server.url, "redis://127.0.0.1:1", "redis://127.0.0.1:2"]
      const error = yield* Effect.flip(Effect.scoped(Layer.build(IoRedis.layerRedisLock({ urls: members }))))
      assert.strictEqual(
        error.message,
        "ConnectionRefused: 2 of 3 members of the quorum cannot be reached: " +
          "member 2: connect ECONNREFUSED 127.0.0.1:1; member 3: connect ECONNREFUSED 127.0.0.1:2. " +
          "Check that it runs and that address, port and TLS are right"
      )
    }
  )
})
