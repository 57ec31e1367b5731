/**
 * What Redisson's own tests verify of its RPermitExpirableSemaphore, by the numbers of the project's list of behaviours, where no
 * other test here proves it.
 *
 * - 174 is on Redis alone, where a key can be given an expiry: the library has no function for it.
 * - 182: every acquisition here is asynchronous, so it is 178 and 185.
 * - 183, 185: a release of what is not held fails with `LockLost`; of a list, it is `false`.
 * - 191: the lease of an unknown id is `None`.
 * - 195: a name mapper is a key prefix here.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Scope } from "effect"
import { CountDownLatch, PermitId, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { freshName } from "../kit/names.ts"
import { eventually, until } from "../kit/eventually.ts"
import { onBothStores } from "./semaphoreKit.ts"
import { testLive } from "../kit/test.ts"

/** Ids that nobody in this process looks after, as if a Java client had them; they end after the lease. */
const taken = (semaphore: string, permits: number, leaseTime: Duration.Input = "1 minute") =>
  Effect.map(
    Effect.flatMap(Scope.make(), (scope) =>
      Scope.provide(PermitSemaphore.scoped(semaphore, { permits, leaseTime, waitTime: 0 }), scope)
    ),
    ({ ids }) => ids
  )

const isTaken = (semaphore: string, permits = 1) =>
  Effect.map(Effect.scoped(PermitSemaphore.tryScoped(semaphore, { permits })), Option.isSome)

/** Brings the end of a permit's lease. */
const expire = Effect.fnUntraced(function* (semaphore: string, id: string) {
  assert.isTrue(yield* PermitId.updateLeaseTime(semaphore, id, 1))
  yield* eventually("the lease has ended", PermitId.leaseTime(semaphore, id), Option.isNone)
})

/** Waits until so many permits are free. */
const free = Effect.fnUntraced(function* (semaphore: string, permits: number) {
  yield* eventually(`${permits} are free`, PermitSemaphore.availablePermits(semaphore), (free) => free === permits)
})

const unknown = "0123456789abcdef".repeat(2)

onBothStores("RPermitExpirableSemaphore", (test) => {
  test("168. an absent semaphore has 0 available permits", function* (semaphore) {
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 0)
  })

  test("169. trySetPermits is true once, then false and changes nothing", function* (semaphore) {
    assert.isTrue(yield* PermitSemaphore.trySetPermits(semaphore, 10))
    assert.isFalse(yield* PermitSemaphore.trySetPermits(semaphore, 15))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 10)
  })

  test("170. permit ids are 32 characters", function* (name) {
    const semaphore = PermitSemaphore.make(name, { permits: 2 })
    const { ids } = yield* PermitSemaphore.scoped(semaphore, { permits: 2 })
    assert.strictEqual(new Set(ids).size, 2)
    for (const id of ids) assert.match(id, /^[0-9a-f]{32}$/)
  })

  test("171. no permit is granted beyond the limit, and expired permits come back", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 2)
    const [first] = yield* taken(semaphore, 1)
    const [second] = yield* taken(semaphore, 1)
    assert.isFalse(yield* isTaken(semaphore))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 0)
    yield* expire(semaphore, first!)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
    assert.isTrue(yield* isTaken(semaphore))
    yield* expire(semaphore, second!)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 2)
  })

  test("172. acquiredPermits is 0, 1, 2 and back to 0 after expiry", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 2)
    const counts = [yield* PermitSemaphore.acquiredPermits(semaphore)]
    const ids = []
    for (let i = 0; i < 2; i++) {
      ids.push(...(yield* taken(semaphore, 1)))
      counts.push(yield* PermitSemaphore.acquiredPermits(semaphore))
    }
    for (const id of ids) yield* expire(semaphore, id)
    counts.push(yield* PermitSemaphore.acquiredPermits(semaphore))
    assert.deepStrictEqual(counts, [0, 1, 2, 0])
  })

  test("173. totalPermits stays the same through acquiring, exhaustion and expiry", function* (semaphore) {
    const total = PermitSemaphore.totalPermits(semaphore)
    assert.strictEqual(yield* total, 0)
    yield* PermitSemaphore.trySetPermits(semaphore, 2)
    assert.strictEqual(yield* total, 2)
    const [first] = yield* taken(semaphore, 1)
    assert.strictEqual(yield* total, 2)
    yield* taken(semaphore, 1)
    assert.isFalse(yield* isTaken(semaphore))
    assert.strictEqual(yield* total, 2)
    yield* expire(semaphore, first!)
    assert.strictEqual(yield* total, 2)
  })

  test("175. a waiter behind a lease gets the permit when it ends; it can then not be released", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 1)
    const startedAt = performance.now()
    const [id] = yield* taken(semaphore, 1, "700 millis")
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* PermitSemaphore.scoped(semaphore, { waitTime: "30 seconds" })
        assert.isAtLeast(performance.now() - startedAt, 690)
        assert.isFalse(yield* PermitId.tryRelease(semaphore, [id!]))
        assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 0)
      })
    )
  })

  test("176. setPermits defines the total, free and held", function* (semaphore) {
    const counts = Effect.all([
      PermitSemaphore.totalPermits(semaphore),
      PermitSemaphore.availablePermits(semaphore),
      PermitSemaphore.acquiredPermits(semaphore)
    ])
    const seen = []
    for (const permits of [10, 15, 15, 5]) {
      yield* PermitSemaphore.setPermits(semaphore, permits)
      seen.push(yield* counts)
    }
    yield* taken(semaphore, 3)
    for (const permits of [5, 3, 2]) {
      yield* PermitSemaphore.setPermits(semaphore, permits)
      seen.push(yield* counts)
    }
    assert.deepStrictEqual(seen, [
      [10, 10, 0],
      [15, 15, 0],
      [15, 15, 0],
      [5, 5, 0],
      [5, 2, 3],
      [3, 0, 3],
      [2, -1, 3]
    ])
  })

  test("177. addPermits may be negative and drive the available count below zero", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 10)
    yield* PermitSemaphore.addPermits(semaphore, 5)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 15)
    yield* PermitSemaphore.addPermits(semaphore, -20)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), -5)
    yield* PermitSemaphore.addPermits(semaphore, 20)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 15)
  })

  test("181. 4 and 5 of 10 leave 1", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 10)
    yield* taken(semaphore, 4)
    assert.isFalse(yield* isTaken(semaphore, 7))
    yield* taken(semaphore, 5)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
  })

  test("183. releasing an unknown id is an error", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 1)
    const error = yield* Effect.flip(PermitId.release(semaphore, unknown))
    assert.strictEqual(error._tag, "LockLost")
    assert.strictEqual((yield* Effect.flip(PermitId.release(semaphore, "1234")))._tag, "InvalidLockOptions")
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
  })

  test("184. tryRelease of an expired id is false", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 1)
    const ids = yield* taken(semaphore, 1)
    yield* expire(semaphore, ids[0]!)
    assert.isFalse(yield* PermitId.tryRelease(semaphore, ids))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
  })

  test("185. a list released in two parts restores the counts; releasing it again is refused", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 10)
    const ids = yield* taken(semaphore, 6)
    const counts = [yield* PermitSemaphore.availablePermits(semaphore)]
    for (const part of [ids.slice(0, 4), [], ids.slice(4)]) {
      assert.isTrue(yield* PermitId.tryRelease(semaphore, part))
      counts.push(yield* PermitSemaphore.availablePermits(semaphore))
    }
    assert.isFalse(yield* PermitId.tryRelease(semaphore, ids))
    counts.push(yield* PermitSemaphore.availablePermits(semaphore))
    assert.deepStrictEqual(counts, [4, 8, 8, 10, 10])
  })

  test("187. expired permits of a batch are recovered by later operations", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 10)
    yield* taken(semaphore, 9, "300 millis")
    const [longer] = yield* taken(semaphore, 1)
    yield* free(semaphore, 9)
    assert.isTrue(yield* PermitId.tryRelease(semaphore, [longer!]))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 10)
  })

  test("188. tryRelease of permits without end recovers expired ones as well; of expired ones it changes nothing", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 10)
    const expired = yield* taken(semaphore, 2)
    const endless = yield* taken(semaphore, 2)
    for (const id of endless) assert.isTrue(yield* PermitId.updateLeaseTime(semaphore, id, "Infinity"))
    for (const id of expired) yield* expire(semaphore, id)
    assert.isTrue(yield* PermitId.tryRelease(semaphore, endless))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 10)
    assert.isFalse(yield* PermitId.tryRelease(semaphore, expired))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 10)
  })

  test("189. a list with an expired, a released or an unknown id releases nothing", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 10)
    const held = yield* taken(semaphore, 4)
    const [released] = yield* taken(semaphore, 1)
    yield* PermitId.release(semaphore, released!)
    const [expired] = yield* taken(semaphore, 1)
    yield* expire(semaphore, expired!)
    for (const bad of [unknown, released!, expired!]) {
      assert.isFalse(yield* PermitId.tryRelease(semaphore, [...held, bad]))
      assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 6)
    }
    assert.isTrue(yield* PermitId.tryRelease(semaphore, held))
  })

  test("190. updateLeaseTime: false for an unknown or expired id, true for a live one, which it keeps busy", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 1)
    assert.isFalse(yield* PermitId.updateLeaseTime(semaphore, unknown, "1 second"))
    const [id] = yield* taken(semaphore, 1, "1 minute")
    assert.isTrue(yield* PermitId.updateLeaseTime(semaphore, id!, "10 minutes"))
    const left = Option.getOrThrow(yield* PermitId.leaseTime(semaphore, id!))
    assert.isAbove(Duration.toSeconds(left), 60)
    assert.isFalse(yield* isTaken(semaphore))
    assert.isTrue(yield* PermitId.updateLeaseTime(semaphore, id!, "300 millis"))
    yield* free(semaphore, 1)
    assert.isFalse(yield* PermitId.updateLeaseTime(semaphore, id!, "1 second"))
  })

  test("191. leaseTime: none for an unknown id, infinite for one without end, else what is left", function* (semaphore) {
    yield* PermitSemaphore.trySetPermits(semaphore, 1)
    assert.isTrue(Option.isNone(yield* PermitId.leaseTime(semaphore, unknown)))
    const [id] = yield* taken(semaphore, 1, "1 minute")
    const left = Duration.toMillis(Option.getOrThrow(yield* PermitId.leaseTime(semaphore, id!)))
    assert.isTrue(left > 50_000 && left <= 60_000)
    yield* PermitId.updateLeaseTime(semaphore, id!, Duration.infinity)
    const endless = Option.getOrThrow(yield* PermitId.leaseTime(semaphore, id!))
    assert.isFalse(Duration.isFinite(endless))
  })
})

const connect = (url: string) => bare({ url })
const over = (url: string, options: RedisLock.RedisLockOptions = {}) =>
  Layer.provide(RedisLock.layer(options), IoRedis.layer({ url }))

testLive(
  "174. an expiry of the semaphore's key removes all its keys, that of a permit acquired afterwards included",
  function* () {
    const semaphore = freshName("redisson:permits")
    const redis = yield* connect(redisUrl)
    const keys = () => redis.exists(semaphore, `{${semaphore}}:timeout`)
    yield* Effect.gen(function* () {
      yield* PermitSemaphore.trySetPermits(semaphore, 3)
      yield* Effect.promise(() => redis.pexpire(semaphore, 1500))
      yield* taken(semaphore, 1, "1 hour")
      assert.strictEqual(yield* Effect.promise(keys), 2)
      yield* eventually("the keys have expired", keys, (count) => count === 0)
      assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 0)
    }).pipe(Effect.provide(over(redisUrl)))
  }
)

testLive("195. works in a cluster with a key prefix, and so do the others", function* () {
  const server = yield* RedisServer.start({ args: ["--cluster-enabled", "yes"] })
  const redis = yield* connect(server.url)
  yield* Effect.promise(() => redis.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383"))
  yield* until("the cluster is ready", async () => String(await redis.cluster("INFO")).includes("cluster_state:ok"))
  yield* Effect.gen(function* () {
    for (const name of ["plain", "{tag}:x", "a{b}c"]) {
      const semaphore = PermitSemaphore.make(name, { permits: 1 })
      yield* PermitSemaphore.withPermit(Effect.void, semaphore)
      const ids = yield* Effect.map(Effect.scoped(PermitSemaphore.scoped(semaphore)), (permit) => permit.ids)
      assert.isFalse(yield* PermitId.tryRelease(semaphore, ids))
      assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
    }
    for (const name of ["counted", "{tag}:y", "c{d}e"]) {
      const semaphore = Semaphore.make(name, { permits: 2 })
      yield* Semaphore.withPermits(Effect.void, semaphore, 2)
      assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 2)
    }
    yield* CountDownLatch.trySetCount("latch", 1)
    yield* CountDownLatch.countDown("latch")
    yield* CountDownLatch.await("latch")
  }).pipe(Effect.provide(over(server.url, { keyPrefix: "test::" })))
  assert.strictEqual(yield* Effect.promise(() => redis.get("test::plain")), "1")
})
