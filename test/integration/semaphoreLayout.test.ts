/**
 * What stands in Redis of semaphores and latches, byte for byte: the keys, members, scores, channels and payloads of
 * Redisson. A Java client is played by raw commands.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { CountDownLatch, LockStore, PermitId, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { observedStore, waiterSleepsOn } from "../kit/observedStore.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { command, messages, raw } from "./raw.ts"
import { suitesOn } from "../kit/test.ts"

// without messages a waiter here would sleep for five minutes
/** Milliseconds. */
const commandTimeout = 2000

const locks = Layer.provideMerge(
  RedisLock.layerFromStore({ fallbackInterval: "5 minutes" }),
  observedStore(Layer.provide(LockStore.layerRedis, IoRedis.layer({ url: redisUrl, commandTimeout })))
)

/** All keys that have to do with a name, without the one that notes for 100 ms that it was the turn of those who listen here. */
const keysOf = (unique: string) =>
  Effect.map(
    command((redis) => redis.keys(`*${unique}*`)),
    (keys) => keys.filter((key) => !key.startsWith("effect_redis_lock_permit_wants:")).sort()
  )

const forms = (unique: string) => [
  { name: `order ${unique}`, channel: `redisson_sc:{order ${unique}}`, ids: `{order ${unique}}:timeout` },
  { name: `{order ${unique}}:5`, channel: `redisson_sc:{order ${unique}}:5`, ids: `{order ${unique}}:5:timeout` },
  { name: `a{${unique}}`, channel: `redisson_sc:a{${unique}}`, ids: `a{${unique}}:timeout` },
  { name: `a{${unique}`, channel: `redisson_sc:a{${unique}`, ids: `a{${unique}:timeout` }
]

const shown = (name: string, unique: string) => name.replaceAll(unique, "")

suitesOn(Layer.merge(locks, raw), { excludeTestServices: true })("in Redis", (test) => {
  for (const form of [0, 1, 2, 3]) {
    const counters = crypto.randomUUID()
    const { channel, name } = forms(counters)[form]!
    test(`The semaphore ${shown(name, counters)} is a counter, and sends messages with its total`, function* () {
      const heard = yield* messages(channel)
      yield* Semaphore.trySetPermits(name, 10)
      assert.deepStrictEqual(yield* heard, ["10"])
      const semaphore = Semaphore.make(name, { permits: 3 })
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* command((redis) => redis.get(name)), "6")
        const { clientId } = yield* RedisLock.RedisLock
        const marker = (yield* keysOf(counters)).find((key) => key !== name)
        assert.include(marker, `effect_redis_lock_grant:${channel.slice("redisson_sc:".length)}:${clientId}:`)
        assert.isAbove(yield* command((redis) => redis.pttl(marker!)), 86_000_000)
      }).pipe(Semaphore.withPermits(semaphore, 4))
      assert.deepStrictEqual(yield* heard, ["10"])
      assert.deepStrictEqual(yield* keysOf(counters), [name])
      yield* Semaphore.addPermits(name, -12)
      yield* Semaphore.release(name, 2)
      assert.strictEqual(yield* command((redis) => redis.get(name)), "0")
      yield* Semaphore.addPermits(name, 7)
      // nothing was said of a total of -2 and of 0
      assert.deepStrictEqual(yield* heard, ["7"])
      // Java takes and gives
      yield* command((redis) => redis.decrby(name, 7))
      const waiter = yield* Effect.forkChild(Semaphore.acquire(name, 2))
      yield* waiterSleepsOn(channel)
      yield* command((redis) => redis.multi().incrby(name, 2).publish(channel, "2").exec())
      yield* Fiber.join(waiter)
      assert.strictEqual(yield* command((redis) => redis.get(name)), "0")
      // what serves only to undo an acquisition goes by itself: a minute after the last reply to it can have come
      const longest = 60_000 + 3 * commandTimeout
      for (const key of yield* keysOf(counters)) {
        if (key !== name) assert.isAtMost(yield* command((redis) => redis.pttl(key)), longest)
      }
      yield* command((redis) => redis.del(name))
    })
  }

  test("A semaphore that is created by its first user announces the permits that are left", function* () {
    const name = `semaphore ${crypto.randomUUID()}`
    const heard = yield* messages(`redisson_sc:{${name}}`)
    yield* Semaphore.acquire(Semaphore.make(name, { permits: 5 }), 2)
    assert.deepStrictEqual(yield* heard, ["3"])
    yield* command((redis) => redis.del(name))
  })

  test("The time to live of a semaphore survives adding, removing and draining permits", function* () {
    const name = `semaphore ${crypto.randomUUID()}`
    yield* Semaphore.trySetPermits(name, 5, { timeToLive: "1 hour" })
    yield* Semaphore.addPermits(name, 3)
    yield* Semaphore.addPermits(name, -1)
    yield* Semaphore.drainPermits(name)
    yield* PermitSemaphore.addPermits(name, 3)
    yield* PermitSemaphore.setPermits(name, 9)
    assert.isAbove(yield* command((redis) => redis.pttl(name)), 3_590_000)
    yield* command((redis) => redis.del(name))
  })

  test("What remembers a grant in the last millisecond of a semaphore's time to live ends with it", function* () {
    const store = yield* LockStore.LockStore
    let inTime: string | undefined
    // each time there are requests all along, until one comes when Redis says that no millisecond is left
    while (inTime === undefined) {
      const name = `semaphore ${crypto.randomUUID()}`
      yield* Semaphore.trySetPermits(name, 100_000, { timeToLive: 20 })
      const markers = Array.from({ length: 1000 }, (_, i) => `effect_redis_lock_grant:{${name}}:${i}`)
      const replies = yield* Effect.forEach(
        markers,
        (marker) =>
          runOperation(
            store,
            "semaphore/acquire",
            [name, `{${name}}:timeout`, marker, `redisson_sc:{${name}}`],
            ["", 1, 86_400_000, "PUBLISH"]
          ) as Effect.Effect<ReadonlyArray<number>>,
        { concurrency: "unbounded" }
      )
      inTime = markers.find((_, i) => replies[i]![0] === 1 && replies[i]![3] === 0)
    }
    assert.isAtMost(yield* command((redis) => redis.pttl(inTime!)), 1)
  })

  const leased = crypto.randomUUID()
  for (const { channel, ids, name } of forms(leased)) {
    test(`The permit semaphore ${shown(name, leased)} keeps 16 raw bytes for each permit, scored with the end of its lease`, function* () {
      const heard = yield* messages(channel)
      const semaphore = PermitSemaphore.make(name, { permits: 10 })
      const permit = yield* PermitSemaphore.scoped(semaphore, { permits: 3, leaseTime: "1 minute" })
      assert.deepStrictEqual(yield* heard, ["7"])
      assert.deepStrictEqual(yield* keysOf(leased), [ids, name].sort())
      assert.strictEqual(yield* command((redis) => redis.get(name)), "7")
      const members = yield* command((redis) => redis.zrangeBuffer(ids, "0", "-1"))
      assert.deepStrictEqual(members.map((member) => member.toString("hex")).sort(), [...permit.ids].sort())
      const [seconds] = yield* command((redis) => redis.time())
      for (const member of members) {
        const left = Number(yield* command((redis) => redis.zscore(ids, member))) - Number(seconds) * 1000
        assert.isTrue(left > 50_000 && left <= 61_000, String(left))
      }

      // a permit of Java, without end; and one whose lease has ended
      const java = Buffer.from("00ff10807f0a0d2500ff10807f0a0d25", "hex")
      const expired = Buffer.from("11".repeat(16), "hex")
      yield* command((redis) =>
        redis.multi().decrby(name, 2).zadd(ids, 922_337_203_685_477, java).zadd(ids, 1_700_000_000_000, expired).exec()
      )
      assert.strictEqual(yield* PermitSemaphore.acquiredPermits(semaphore), 4)
      assert.deepStrictEqual(yield* heard, ["6"])
      assert.isTrue(yield* PermitId.updateLeaseTime(semaphore, permit.ids[0]!, "Infinity"))
      const endless = yield* command((redis) => redis.zscore(ids, Buffer.from(permit.ids[0]!, "hex")))
      assert.strictEqual(endless, "922337203685477")
      yield* PermitId.release(semaphore, java.toString("hex"))
      assert.deepStrictEqual(yield* heard, ["7"])

      yield* permit.release
      assert.deepStrictEqual(yield* heard, ["10"])
      assert.deepStrictEqual(yield* keysOf(leased), [name])
      yield* command((redis) => redis.del(name))
    })
  }

  test("A permit of Java whose lease overflows never ends, and is not taken for another one that ends", function* () {
    const name = `semaphore ${crypto.randomUUID()}`
    const [java, ended] = ["00ff10807f0a0d2500ff10807f0a0d25", "11".repeat(16)].map((id) => Buffer.from(id, "hex"))
    const semaphore = PermitSemaphore.make(name, { permits: 2 })
    yield* PermitSemaphore.withPermit(semaphore)(Effect.void)
    yield* command((redis) =>
      redis
        .multi()
        .decrby(name, 2)
        // Long.MAX_VALUE milliseconds from now, as Redisson adds them up
        .zadd(`{${name}}:timeout`, -9_223_370_300_000_000_000, java!)
        .zadd(`{${name}}:timeout`, 1_700_000_000_000, ended!)
        .exec()
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        assert.isTrue(Option.isSome(yield* PermitSemaphore.tryScoped(semaphore)))
        assert.isTrue(Option.isNone(yield* PermitSemaphore.tryScoped(semaphore)))
      })
    )
    assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
    yield* command((redis) => redis.del(name, `{${name}}:timeout`))
  })

  const latches = crypto.randomUUID()
  for (const name of [`deploy ${latches}`, `{deploy ${latches}}:5`, `a{${latches}`]) {
    test(`The latch ${shown(name, latches)} is a count, and sends 1 when closed and 0 when open`, function* () {
      const channel = `redisson_countdownlatch__channel__{${name}}`
      const heard = yield* messages(channel)
      yield* CountDownLatch.trySetCount(name, 2)
      assert.deepStrictEqual(yield* heard, ["1"])
      assert.deepStrictEqual(yield* keysOf(latches), [name])
      assert.strictEqual(yield* command((redis) => redis.get(name)), "2")
      assert.strictEqual(yield* command((redis) => redis.pttl(name)), -1)
      const waiter = yield* Effect.forkChild(CountDownLatch.await(name))
      yield* waiterSleepsOn(channel)
      yield* CountDownLatch.countDown(name)
      // Java counts down
      yield* command((redis) => redis.multi().decr(name).del(name).publish(channel, "0").exec())
      yield* Fiber.join(waiter)
      assert.deepStrictEqual(yield* heard, ["0"])
      yield* CountDownLatch.countDown(name)
      yield* CountDownLatch.trySetCount(name, 1)
      yield* CountDownLatch.countDown(name)
      yield* CountDownLatch.trySetCount(name, 1)
      yield* CountDownLatch.delete(name)
      assert.deepStrictEqual(yield* heard, ["1", "0", "1", "1", "0"])
      assert.deepStrictEqual(yield* keysOf(latches), [])
    })
  }
})
