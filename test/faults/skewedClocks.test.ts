/**
 * A quorum of real servers whose clocks are up to three hours apart: tokens rise and nobody gets in besides the holder,
 * whichever majority answers.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Option } from "effect"
import { FencedLock, Lock, type LockReentered, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { clientOf, locks } from "../kit/clients.ts"
import { lockKey, renewed } from "../kit/server/conditions.ts"
import { noLockLeft, type Place } from "./quorumSite.ts"
import { impossible, skewedServers } from "./skewedServers.ts"
import { testLive } from "../kit/test.ts"

if (impossible !== undefined) console.log(`The tests of servers with wrong clocks are skipped: ${impossible}`)

const skews = [3600, 7200, -3600, 0, 1]

/** Any two have a member in common: once the one that is an hour behind. */
const majorities = [
  [1, 2, 3],
  [3, 4, 5],
  [1, 3, 4],
  [2, 4, 5]
]

const { readLock, writeLock } = ReadWriteLock.make("ledger")

const clientOn = (places: ReadonlyArray<Place>) =>
  clientOf(
    RedisLock.layerQuorum(
      places.map(({ server }) => locks(server, { watchdogLeaseTime: "6 seconds", fallbackInterval: "200 millis" })),
      { memberTimeout: "500 millis" }
    )
  )

/** Those of these numbers answer; the others are stopped, and answer late. */
const onlyAnswer = (places: ReadonlyArray<Place>, members: ReadonlyArray<number>) =>
  Effect.forEach(places, ({ server }, i) => (members.includes(i + 1) ? server.resume : server.pause), { discard: true })

const grant = (lock: Lock.Lock<RedisLock.RedisLock, LockReentered>) =>
  Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock))

const kinds = {
  "plain locks": [Lock.make("ledger")],
  "fenced locks": [FencedLock.make("ledger")],
  "writers and readers": [writeLock, readLock, readLock]
}

describe.skipIf(impossible !== undefined)("a quorum of servers with clocks hours apart", () => {
  for (const [name, sides] of Object.entries(kinds)) {
    testLive(`A quorum with clocks hours apart grants rising tokens by alternating majorities: ${name}`, function* () {
      const places = yield* skewedServers(skews)
      const clients = [yield* clientOn(places), yield* clientOn(places)]
      let last = 0n
      for (let i = 0; i < 24; i++) {
        yield* onlyAnswer(places, majorities[i % majorities.length]!)
        const side = sides[i % sides.length]!
        const token = yield* clients[i % 2]!.run(grant(side))
        assert.isTrue(side === readLock ? token >= last : token > last, `${token} after ${last} in round ${i}`)
        last = token
      }
      yield* onlyAnswer(places, [1, 2, 3, 4, 5])
      for (const { redis } of places) yield* noLockLeft(redis)
    })
  }

  testLive(
    "A quorum with clocks hours apart keeps a lock while its lease is renewed, and no longer than it lasts",
    function* () {
      const places = yield* skewedServers([7200, -3600, 0])
      const [mine, others] = [yield* clientOn(places), yield* clientOn(places)]
      yield* mine.run(
        Effect.gen(function* () {
          const holding = yield* Lock.currentHolding("ledger")
          // a majority has granted it: the others may do so later
          for (const { redis } of places) yield* lockKey(redis, "ledger", "there")
          yield* renewed(places[0]!.redis, "ledger", 2)
          yield* holding.ensureHeld
          for (const { redis } of places) {
            const left = yield* Effect.promise(() => redis.pttl("ledger"))
            assert.isTrue(left > 0 && left <= 6000, `${left} ms left`)
          }
          assert.isTrue(Option.isNone(yield* others.run(Lock.withLockIfAvailable(Effect.void, "ledger"))))
        }).pipe(Lock.withLock("ledger"))
      )
      assert.strictEqual(yield* others.run(Lock.withLock(Effect.succeed("next"), "ledger")), "next")
    }
  )
})
