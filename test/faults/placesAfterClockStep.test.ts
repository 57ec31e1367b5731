/**
 * The clock of a server is set back, or a master takes over whose clock is behind, while clients have places.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, PermitSemaphore, ReadWriteLock, type RedisLock, Semaphore } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"

const hour = 3_600_000_000

const { readLock, writeLock } = ReadWriteLock.make("ledger")
const semaphore = Semaphore.make("ledger", { permits: 1 })
const permits = PermitSemaphore.make("ledger", { permits: 1 })

type Section = Effect.Effect<unknown, unknown, RedisLock.RedisLock>
type Around = (body: Effect.Effect<void>) => Section

const withPermit: Around = (body) => Semaphore.withPermits(body, semaphore, 1)
const withLeasedPermit: Around = (body) => PermitSemaphore.withPermit(body, permits)

const lockPlaces = "effect_redis_lock_places:{ledger}"
const permitPlaces = "effect_redis_lock_permit_places:{ledger}"

const kinds: ReadonlyArray<readonly [kind: string, holder: Around, waiter: Around, places: string]> = [
  ["a plain lock", Lock.withLock("ledger"), Lock.withLock("ledger"), lockPlaces],
  ["a write lock", Lock.withLock(writeLock), Lock.withLock(writeLock), lockPlaces],
  ["a read lock", Lock.withLock(writeLock), Lock.withLock(readLock), lockPlaces],
  ["a semaphore", withPermit, withPermit, permitPlaces],
  ["a permit semaphore", withLeasedPermit, withLeasedPermit, permitPlaces]
]

describe("a place that was taken by a clock that is ahead of the server's", () => {
  for (const [kind, holder, waiter, places] of kinds) {
    it.live(`is not behind all that are taken from now on: a client that waits for ${kind}`, () =>
      Effect.gen(function* () {
        const server = yield* RedisServer.start()
        const redis = yield* bare(server)
        const first = yield* client(server)
        yield* sectionUntilTold<unknown, unknown, never>((body) => first.run(holder(body)))
        yield* Effect.forkScoped((yield* client(server)).run(waiter(Effect.void)))
        const place = () => redis.zrange(places, "0", "0", "WITHSCORES")
        const [owner = "", score = ""] = yield* eventually("the client has a place", place, (it) => it.length === 2)
        yield* Effect.promise(() => redis.zadd(places, String(Number(score) + hour), owner))
        // the time of its next request
        yield* eventually(
          "its place is as old as its next request",
          place,
          (it) => Number(it[1]) < Number(score) + hour / 2
        )
        assert.isAbove(Number((yield* Effect.promise(place))[1]), Number(score))
      }).pipe(Effect.scoped)
    )
  }
})
