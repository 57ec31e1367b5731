/**
 * What stands in Redis, byte for byte, for the other kinds: Redisson's fair lock, read-write lock and fenced lock. A Java
 * client is played by raw commands.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { FairLock, FencedLock, Lock, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { command, messages, Raw, raw } from "./raw.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { eventually } from "../kit/eventually.ts"
import { suitesOn } from "../kit/test.ts"

// without messages a waiter here would sleep for five minutes
const locks = Layer.provide(RedisLock.layer({ fallbackInterval: "5 minutes" }), IoRedis.layer({ url: redisUrl }))

const unique = crypto.randomUUID()
const java = (thread: number) => `2a5b1f3e-0000-4000-8000-000000000001:${thread}`

const names = [
  { name: `order ${unique}`, tagged: `{order ${unique}}` },
  { name: `{order ${unique}}:5`, tagged: `{order ${unique}}:5` }
]

const assertLeaseOf = (millis: number, left: number) =>
  assert.isTrue(left > millis - 10_000 && left <= millis, `${left} of ${millis}`)

suitesOn(Layer.merge(locks, raw), { excludeTestServices: true })("in Redis", (test) => {
  for (const { name, tagged } of names) {
    const shown = name.replaceAll(unique, "")

    test(`${shown}: a fair lock's queue, scores and channels`, function* () {
      const lock = FairLock.make(`fair ${name}`)
      const fair = tagged.startsWith("{order") && !name.startsWith("{") ? `{fair ${name}}` : `fair ${name}`
      const queueKey = `redisson_lock_queue:${fair}`
      const timeoutsKey = `redisson_lock_timeout:${fair}`
      const channelOf = (owner: string) => `redisson_lock__channel:${fair}:${owner}`
      const queue = command((redis) => redis.lrange(queueKey, 0, -1))
      const scoreOf = (owner: string) => command(async (redis) => Number(await redis.zscore(timeoutsKey, owner)))
      const { clientId } = yield* RedisLock.RedisLock

      const holding = yield* Lock.scoped(lock)
      assert.deepStrictEqual(yield* command((redis) => redis.hgetall(lock.name)), { [holding.owner]: "1" })
      assertLeaseOf(30_000, yield* command((redis) => redis.pttl(lock.name)))
      assert.deepStrictEqual(yield* queue, [])

      const order: Array<number> = []
      const wait = (n: number) =>
        Effect.sync(() => order.push(n)).pipe(Lock.withLock(lock), Lock.withOwner, Effect.forkChild)
      const first = yield* wait(1)
      yield* eventually("one is queued", queue, (owners) => owners.length === 1)
      const second = yield* wait(2)
      const owners = yield* eventually("two are queued", queue, (owners) => owners.length === 2)
      for (const owner of owners) assert.match(owner, new RegExp(`^${clientId}:[0-9]+$`))
      // what the holder has left and five minutes, and five minutes for each place more, in milliseconds of server time
      const now = yield* Raw.use(serverTime)
      const [one, two] = [yield* scoreOf(owners[0]!), yield* scoreOf(owners[1]!)]
      assertLeaseOf(330_000, one - now)
      // a report of this client, which puts off the end of those who wait, may have come in between
      assert.approximately(two - one, 300_000, 600)
      assert.strictEqual(yield* command((redis) => redis.pttl(queueKey)), -1)
      assert.strictEqual(yield* command((redis) => redis.pttl(timeoutsKey)), -1)

      // a Java waiter in the middle: it is the only one that hears of the release when its turn has come
      yield* command((redis) =>
        redis
          .multi()
          .linsert(queueKey, "AFTER", owners[0]!, java(1))
          .zadd(timeoutsKey, one + 300_000, java(1))
          .exec()
      )
      const heard = yield* messages(channelOf(java(1)))
      const plainChannel = yield* messages(`redisson_lock__channel:${fair}`)
      yield* eventually(
        "somebody listens to the channel",
        command((redis) => redis.pubsub("NUMSUB", channelOf(owners[0]!))),
        (reply) => Number(reply[1]) === 1
      )
      yield* eventually(
        "somebody listens to the channel",
        command((redis) => redis.pubsub("NUMSUB", channelOf(owners[1]!))),
        (reply) => Number(reply[1]) === 1
      )
      yield* holding.release
      yield* Fiber.join(first)
      assert.deepStrictEqual(yield* heard, ["0"])
      assert.deepStrictEqual(yield* plainChannel, [])
      assert.isUndefined(second.pollUnsafe())
      assert.deepStrictEqual(order, [1])
      assert.deepStrictEqual(yield* queue, [java(1), owners[1]])
      // who was served took its five minutes off the others; a report of this client that came before the first had extended its lease
      // has counted with the lease of the message
      const front = yield* scoreOf(java(1))
      assert.isTrue(front > one - 30_000 && front <= one, `${front} for ${one}`)

      // Java takes its turn, releases, and tells the next
      yield* command((redis) =>
        redis
          .multi()
          .lpop(queueKey)
          .zrem(timeoutsKey, java(1))
          .zincrby(timeoutsKey, "-300000", owners[1]!)
          .publish(channelOf(owners[1]!), "0")
          .exec()
      )
      yield* Fiber.join(second)
      assert.deepStrictEqual(order, [1, 2])
      for (const key of [lock.name, queueKey, timeoutsKey, `effect_redis_lock_clients:${fair}`]) {
        assert.strictEqual(yield* command((redis) => redis.exists(key)), 0, key)
      }
    })

    for (const end of ["gives up", "has died"]) {
      test(`${shown}: a Java waiter behind a place of ours counts as dead after its own timeout once ours ${end}`, function* () {
        const lock = FairLock.make(`behind ${end} ${name}`)
        const fair = tagged.startsWith("{order") && !name.startsWith("{") ? `{${lock.name}}` : lock.name
        const [queueKey, timeoutsKey] = [`redisson_lock_queue:${fair}`, `redisson_lock_timeout:${fair}`]
        const scoreOf = (owner: string) => command(async (redis) => Number(await redis.zscore(timeoutsKey, owner)))
        yield* Lock.scoped(lock)
        const waiting = yield* Effect.forkChild(Lock.withLock(Effect.die("nobody lets go"), lock).pipe(Lock.withOwner))
        const [ours] = yield* eventually(
          "one is queued",
          command((redis) => redis.lrange(queueKey, 0, -1)),
          (owners) => owners.length === 1
        )
        const due = yield* scoreOf(ours!)
        // Redisson's fairLockWaitTimeout is five seconds there
        yield* command((redis) =>
          redis
            .multi()
            .rpush(queueKey, java(2))
            .zadd(timeoutsKey, due + 5000, java(2))
            .exec()
        )
        if (end === "has died") {
          const dead = `${crypto.randomUUID()}:1`
          yield* command((redis) =>
            redis
              .multi()
              .lpush(queueKey, dead)
              .zadd(timeoutsKey, due - 1, dead)
              .zadd(`effect_redis_lock_clients:${fair}`, 1, dead.slice(0, 36))
              .exec()
          )
        }
        yield* Fiber.interrupt(waiting)
        yield* eventually(
          "Java is alone",
          command((redis) => redis.lrange(queueKey, 0, -1)),
          (owners) => owners.length === 1
        )
        const [score, time, held] = yield* command(async (redis) => {
          const replies = await redis.multi().zscore(timeoutsKey, java(2)).time().pttl(lock.name).exec()
          return replies!.map(([, reply]) => reply) as [string, [number, number], number]
        })
        const left = Number(score) - time[0] * 1000 - time[1] / 1000
        // the lock may have been renewed since
        assert.isTrue(left > held - 15_000 && left <= held + 5500, `${left}, and the lock is held for ${held}`)
        yield* command((redis) => redis.del(queueKey, timeoutsKey))
      })
    }

    test(`${shown}: a read-write lock's mode, fields, holds and messages`, function* () {
      const { readLock, writeLock } = ReadWriteLock.make(name)
      const heard = yield* messages(`redisson_rwlock:${tagged}`)
      const fields = command((redis) => redis.hgetall(name))
      const pttl = (key: string) => command((redis) => redis.pttl(key))
      const holdOf = (owner: string, number: number) => `${tagged}:${owner}:rwlock_timeout:${number}`

      // readers
      const reader = yield* Lock.scoped(readLock)
      assert.deepStrictEqual(yield* fields, { mode: "read", [reader.owner]: "1" })
      assert.strictEqual(yield* command((redis) => redis.get(holdOf(reader.owner, 1))), "1")
      assertLeaseOf(30_000, yield* pttl(holdOf(reader.owner, 1)))
      assertLeaseOf(30_000, yield* pttl(name))
      const again = yield* Lock.scoped(readLock, { leaseTime: "1 minute" })
      // counted in the process alone
      assert.deepStrictEqual(yield* fields, { mode: "read", [reader.owner]: "1" })
      assertLeaseOf(60_000, yield* pttl(holdOf(reader.owner, 1)))
      assert.strictEqual(yield* pttl(holdOf(reader.owner, 2)), -2)
      assertLeaseOf(60_000, yield* pttl(name))
      yield* again.release
      assert.deepStrictEqual(yield* fields, { mode: "read", [reader.owner]: "1" })
      assertLeaseOf(60_000, yield* pttl(holdOf(reader.owner, 1)))
      // a Java reader stays when ours goes, for as long as its own hold
      yield* command((redis) =>
        redis
          .multi()
          .hset(name, java(1), 1)
          .set(holdOf(java(1), 1), 1, "PX", 100_000)
          .pexpire(name, 100_000)
          .exec()
      )
      yield* reader.release
      assert.deepStrictEqual(yield* fields, { mode: "read", [java(1)]: "1" })
      assertLeaseOf(100_000, yield* pttl(name))
      assert.deepStrictEqual(yield* heard, [])
      const error = yield* Effect.flip(Lock.withLock(Effect.void, writeLock, { waitTime: 0 }))
      assert.strictEqual(error._tag === "LockTimeout" ? error.holder?.owner : error._tag, java(1))
      yield* command((redis) => redis.del(name, holdOf(java(1), 1)))
      yield* Lock.withLock(Effect.void, readLock)
      assert.deepStrictEqual(yield* heard, ["0"])

      // a writer, which reads and goes on as a reader
      const writer = yield* Lock.scoped(writeLock)
      assert.deepStrictEqual(yield* fields, { mode: "write", [`${writer.owner}:write`]: "1" })
      assertLeaseOf(30_000, yield* pttl(name))
      const reading = yield* Lock.scoped(readLock)
      assert.deepStrictEqual(yield* fields, {
        mode: "write",
        [`${writer.owner}:write`]: "1",
        [reading.owner]: "1"
      })
      assertLeaseOf(30_000, yield* pttl(holdOf(reading.owner, 1)))
      yield* writer.release
      assert.deepStrictEqual(yield* fields, { mode: "read", [reading.owner]: "1" })
      // unlike Redisson, which leaves other readers asleep here
      assert.deepStrictEqual(yield* heard, ["1"])
      yield* reading.release
      yield* Lock.withLock(Effect.void, writeLock)
      assert.deepStrictEqual(yield* heard, ["0", "1"])
      assert.deepStrictEqual(yield* command((redis) => redis.keys(`*${unique}*rwlock_timeout*`)), [])
    })

    test(`${shown}: what a Java writer holds is respected, and its message wakes`, function* () {
      const { readLock, writeLock } = ReadWriteLock.make(name)
      yield* command((redis) => redis.hset(name, { mode: "write", [`${java(1)}:write`]: "2", [java(1)]: "1" }))
      yield* command((redis) => redis.pexpire(name, 300_000))
      const { holders } = yield* Lock.inspect(name)
      assert.deepStrictEqual(
        holders
          .map(({ holdCount, mode, owner }) => ({ owner, holdCount, mode }))
          .toSorted((a, b) => a.holdCount - b.holdCount),
        [
          { owner: java(1), holdCount: 1, mode: "read" },
          { owner: java(1), holdCount: 2, mode: "write" }
        ]
      )
      assert.isTrue((yield* Lock.isLocked(readLock)) && (yield* Lock.isLocked(writeLock)))
      const waiting = yield* Effect.forkChild(Lock.withLock(Effect.succeed("read"), readLock))
      yield* eventually(
        "somebody listens to the channel",
        command((redis) => redis.pubsub("NUMSUB", `redisson_rwlock:${tagged}`)),
        (reply) => Number(reply[1]) === 1
      )
      assert.isUndefined(waiting.pollUnsafe())
      yield* command((redis) => redis.multi().del(name).publish(`redisson_rwlock:${tagged}`, "1").exec())
      assert.strictEqual(yield* Fiber.join(waiting), "read")
    })

    test(`${shown}: a fenced lock's token, a counter without expiry that Java goes on with`, function* () {
      const fenced = `${name} fenced`
      const key = name.startsWith("{") ? `redisson_lock_token:${fenced}` : `redisson_lock_token:{${fenced}}`
      const lock = FencedLock.make(fenced)
      const token = Effect.map(Lock.currentHolding(lock), (holding) => holding.token).pipe(Lock.withLock(lock))
      assert.strictEqual(yield* token, 1n)
      assert.strictEqual(yield* command((redis) => redis.get(key)), "1")
      assert.strictEqual(yield* command((redis) => redis.pttl(key)), -1)
      yield* command((redis) => redis.incr(key))
      assert.strictEqual(yield* token, 3n)
      // a plain lock of the name goes on with the counter, and does not have it expire either
      yield* Lock.withLock(Effect.void, fenced)
      assert.strictEqual(yield* command((redis) => redis.get(key)), "4")
      assert.strictEqual(yield* command((redis) => redis.pttl(key)), -1)
      yield* command((redis) => redis.del(key))
      // one that came first has left a time, which must not expire from now on
      yield* Lock.withLock(Effect.void, fenced)
      assert.isAbove(yield* command((redis) => redis.pttl(key)), 0)
      yield* token
      assert.strictEqual(yield* command((redis) => redis.pttl(key)), -1)
      yield* command((redis) => redis.del(key))
    })
  }
})
