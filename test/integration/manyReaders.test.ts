/**
 * A lock is kept for as long as somebody reads, readers in Java included, which are played by raw commands.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type Holding, Lock, ReadWriteLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { background } from "../kit/background.ts"
import { type Client, client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import { hold, waitFor } from "../faults/kinds.ts"
import { testLive } from "../kit/test.ts"

const { readLock, writeLock } = ReadWriteLock.make("page")
const readers = "effect_redis_lock_readers:{page}"
const minutes = (n: number) => n * 60_000
const java = (thread: number) => `2a5b1f3e-0000-4000-8000-000000000001:${thread}`
const holdOf = (owner: string, number = 1) => `{page}:${owner}:rwlock_timeout:${number}`

const ask = <A>(answer: () => Promise<A>) => Effect.promise(answer)

/** A reader of its own, for as long as the test's scope is open or until it is released. */
const read = (who: Client, millis: number) => hold(who, readLock, { leaseTime: millis })

/** A Java thread begins to read, as Redisson's script does it. */
const javaReads = (redis: Redis, thread: number, millis: number) =>
  ask(async () => {
    const left = await redis.pttl("page")
    await redis.hsetnx("page", "mode", "read")
    const number = await redis.hincrby("page", java(thread), 1)
    await redis.set(holdOf(java(thread), number), "1", "PX", millis)
    await redis.pexpire("page", Math.max(left, millis))
  })

/** A Java thread whose only hold ends: other readers keep the lock while theirs live. */
const javaLeaves = (redis: Redis, thread: number) =>
  ask(async () => {
    await redis.hdel("page", java(thread))
    await redis.del(holdOf(java(thread)))
    let longest = 0
    for (const [field, count] of Object.entries(await redis.hgetall("page"))) {
      for (let number = 1; number <= Number(count); number++) {
        longest = Math.max(longest, await redis.pttl(holdOf(field, number)))
      }
    }
    await (longest > 0 ? redis.pexpire("page", longest) : redis.del("page"))
  })

/** The lock has about so long to live, in milliseconds. */
const assertLives = Effect.fnUntraced(function* (redis: Redis, millis: number) {
  const left = yield* ask(() => redis.pttl("page"))
  assert.isTrue(left > millis - minutes(1) && left <= millis + 5, `${left} instead of ${millis}`)
})

const assertGone = Effect.fnUntraced(function* (redis: Redis) {
  const keys = yield* ask(() => redis.keys("*page*"))
  assert.deepStrictEqual(
    keys.filter((key) => !key.startsWith("redisson_lock_token:")),
    []
  )
})

describe("a lock that is read", () => {
  testLive("Many readers of one lock are renewed, each with its own lease in Redis", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server, { watchdogLeaseTime: "9 seconds" })
    const held = yield* Effect.forEach(Array.from({ length: 50 }), () => hold(mine, readLock), { concurrency: 50 })
    const ends = ask(async () => {
      const lefts = await Promise.all([...held.map(({ owner }) => redis.pttl(holdOf(owner))), redis.pttl("page")])
      return lefts.map((left) => performance.now() + left)
    })
    const before = yield* ends
    yield* eventually("all have been renewed", ends, (now) => now.every((end, i) => end > before[i]! + 1000))
    yield* Effect.forEach(held, ({ release }) => release)
    yield* assertGone(redis)
  })

  testLive("A read lock lives as long as the longest of its holds, in whatever order its readers leave", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const leases = [7, 3, 9, 5].map(minutes)
    const held = yield* Effect.forEach(leases, (lease) => read(mine, lease))
    const left = new Map<Holding, number>(held.map((holding, i) => [holding, leases[i]!]))
    for (const holding of [held[2]!, held[1]!, held[0]!]) {
      yield* holding.release
      left.delete(holding)
      yield* assertLives(redis, Math.max(...left.values()))
    }
    // what is noted of readers ends with the lock
    assert.approximately(yield* ask(() => redis.pttl(readers)), yield* ask(() => redis.pttl("page")), minutes(1))
    yield* held[3]!.release
    yield* assertGone(redis)
  })

  testLive(
    "A read lock lives as long as a Java reader's hold, and is free when the last of both has left",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server)
      const short = yield* read(mine, minutes(5))
      const long = yield* read(mine, minutes(20))
      yield* javaReads(redis, 1, minutes(10))
      yield* short.release
      yield* assertLives(redis, minutes(20))
      yield* long.release
      yield* assertLives(redis, minutes(10))
      const last = yield* read(mine, minutes(5))
      yield* javaLeaves(redis, 1)
      yield* assertLives(redis, minutes(5))
      yield* last.release
      yield* assertGone(redis)
    }
  )

  testLive(
    "A Java reader that freed a read lock by force and reads again keeps it for its whole lease, unaffected by the reader that is gone",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server)
      const gone = yield* read(mine, minutes(3))
      // what readLock.forceUnlock() does: the holds stay
      yield* ask(() => redis.del("page"))
      yield* javaReads(redis, 1, minutes(10))
      assert.deepStrictEqual(yield* ask(() => redis.zrange(readers, "0", "-1")), [gone.owner])
      const holding = yield* read(mine, minutes(5))
      yield* assertLives(redis, minutes(10))
      yield* holding.release
      assert.deepStrictEqual(yield* ask(() => redis.hkeys("page")), ["mode", java(1)])
      yield* assertLives(redis, minutes(10))
      assert.propertyVal(yield* Effect.flip(gone.release), "_tag", "LockLost")
      yield* assertLives(redis, minutes(10))
      yield* javaLeaves(redis, 1)
      yield* ask(() => redis.del(readers, holdOf(gone.owner)))
    }
  )

  testLive(
    "A Java reader keeps the lock for its whole lease beside a reader that was handed it, after Java has freed it by force",
    function* () {
      const { redis, server } = yield* onServer()
      const [mine, writer, reader] = [yield* client(server), yield* client(server), yield* client(server)]
      const gone = yield* read(mine, minutes(3))
      // what readLock.forceUnlock() does: the notes of the readers stay
      yield* ask(() => redis.del("page"))
      yield* javaReads(redis, 1, minutes(10))
      const places = (count: number) =>
        eventually(
          `${count} have a place`,
          () => redis.zcount("effect_redis_lock_places:{page}", "-inf", "(4000000000000000"),
          (placed) => placed === count
        )
      const writes = yield* background(writer.run(Lock.withLock(Effect.void, writeLock)))
      yield* places(1)
      const reads = yield* waitFor(reader, readLock, { leaseTime: minutes(5) })
      yield* places(2)
      // only who listens is handed it
      yield* eventually(
        "both listen",
        () => redis.pubsub("CHANNELS", "redisson_rwlock:{page}:*"),
        (channels) => (channels as ReadonlyArray<string>).filter((channel) => !channel.endsWith(":ours")).length === 2
      )
      // as it gives up, the reader behind it is let in
      yield* Fiber.interrupt(writes)
      const holding = yield* reads.entered
      yield* holding.release
      assert.deepStrictEqual(yield* ask(() => redis.hkeys("page")), ["mode", java(1)])
      yield* assertLives(redis, minutes(10))
      assert.propertyVal(yield* Effect.flip(gone.release), "_tag", "LockLost")
      yield* javaLeaves(redis, 1)
      yield* ask(() => redis.del(readers, holdOf(gone.owner)))
    }
  )

  testLive("A reader whose note was evicted keeps the read lock all the same", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const long = yield* read(mine, minutes(20))
    const short = yield* read(mine, minutes(5))
    yield* ask(() => redis.del(readers))
    // says less of it than is known no more
    yield* long.renew(minutes(5))
    const another = yield* read(mine, minutes(2))
    yield* another.release
    yield* short.release
    yield* assertLives(redis, minutes(20))
    yield* long.ensureHeld
    yield* long.release
    yield* assertGone(redis)
  })

  testLive("A writer that goes on as a reader keeps the lock for its read lease only", function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const program = Effect.gen(function* () {
      const writing = yield* Lock.scoped(writeLock, { leaseTime: minutes(20) })
      const reading = yield* Lock.scoped(readLock, { leaseTime: minutes(5) })
      yield* writing.release
      yield* assertLives(redis, minutes(5))
      yield* reading.release
      yield* assertGone(redis)
    })
    yield* mine.run(Effect.scoped(program))
  })
})
