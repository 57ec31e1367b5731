/**
 * What Redisson's own tests verify of its RedissonMultiLock, by the numbers of the project's list of behaviours, and the example
 * of its RedLock documentation.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { Lock, MultiLock, RedisLock, RedLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"

const serviceAt = (url: string) =>
  Effect.map(Layer.build(Layer.fresh(Layer.provide(RedisLock.layer(), IoRedis.layer({ url })))), (context) =>
    Context.get(context, RedisLock.RedisLock)
  )

/** Three names on one service. */
const three = Effect.map(serviceAt(redisUrl), (service) => {
  const run = crypto.randomUUID()
  const members = [1, 2, 3].map((n) => Lock.provide(Lock.make(`redisson:${run}:${n}`), service))
  return { members, lock: MultiLock.make(members) }
})

/** Another thread: a fiber with an owner of its own. */
const otherThread = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.flatMap(Effect.forkChild(self), Fiber.join)

const tryLock = (lock: Lock.Lock<never, any, any>) => Effect.map(Effect.scoped(Lock.tryScoped(lock)), Option.isSome)

describe("RedissonMultiLock", () => {
  it.live("134. lock(10 s) over three names: held by the current thread while locked, not after unlock", () =>
    Effect.gen(function* () {
      const { lock, members } = yield* three
      yield* Effect.gen(function* () {
        for (const held of [lock, ...members]) assert.isTrue(yield* Lock.isHeldByCurrentOwner(held))
      }).pipe(Lock.withLock(lock, { leaseTime: "1 minute" }))
      for (const held of [lock, ...members]) assert.isFalse(yield* Lock.isHeldByCurrentOwner(held))
    }).pipe(Effect.scoped)
  )

  it.live("34. acquiring the whole makes its members locked", () =>
    Effect.gen(function* () {
      const { lock, members } = yield* three
      const areLocked = Effect.forEach(members, (member) => Lock.isLocked(member))
      assert.deepStrictEqual(yield* Lock.withLock(areLocked, lock), [true, true, true])
      assert.deepStrictEqual(yield* areLocked, [false, false, false])
    }).pipe(Effect.scoped)
  )

  it.live("135. isHeldByThread agrees: no other thread holds it meanwhile", () =>
    Effect.gen(function* () {
      const { lock } = yield* three
      yield* Effect.gen(function* () {
        const holding = yield* Lock.scoped(lock, { leaseTime: "1 minute" })
        assert.isTrue(yield* Lock.isHeldByCurrentOwner(lock))
        assert.isFalse(yield* Lock.withOwner(otherThread(Lock.isHeldByCurrentOwner(lock))))
        yield* holding.release
        assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
      }).pipe(Effect.scoped)
    }).pipe(Effect.scoped)
  )

  it.live("136. ten threads tryLock(wait -1, lease 10 s): exactly one succeeds, all return within 1 s", () =>
    Effect.gen(function* () {
      const { lock } = yield* three
      const asked = yield* Deferred.make<void>()
      let returned = 0
      const results = yield* Effect.forEach(
        Array.from({ length: 10 }),
        () =>
          Effect.gen(function* () {
            const got = yield* Lock.tryScoped(lock, { leaseTime: "1 minute" })
            if (++returned === 10) yield* Deferred.succeed(asked, undefined)
            // nobody lets go before everybody has asked: one that waits would wait for ever
            yield* Deferred.await(asked)
            return Option.isSome(got)
          }).pipe(Effect.scoped, Lock.withOwner),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(results.filter((got) => got).length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("137. a second thread's lock() waits for the first's release (3 s) and then succeeds", () =>
    Effect.gen(function* () {
      const { lock } = yield* three
      const held = yield* Deferred.make<void>()
      let released = false
      const first = yield* Effect.andThen(Deferred.succeed(held, undefined), Effect.sleep("3 seconds")).pipe(
        Effect.tap(Effect.sync(() => (released = true))),
        Lock.withLock(lock),
        Effect.forkChild
      )
      yield* Deferred.await(held)
      assert.isTrue(
        yield* otherThread(
          Lock.withLock(
            Effect.sync(() => released),
            lock
          )
        )
      )
      yield* Fiber.join(first)
    }).pipe(Effect.scoped)
  )

  it.live(
    "138. members on three different servers: while held, another thread's tryLock() is false; release works",
    () =>
      Effect.gen(function* () {
        const members = yield* Effect.forEach(["lock1", "lock2", "lock3"], (name) =>
          Effect.gen(function* () {
            const server = yield* RedisServer.start()
            return Lock.provide(Lock.make(name), yield* serviceAt(server.url))
          })
        )
        const lock = MultiLock.make(members)
        yield* Effect.gen(function* () {
          for (let i = 0; i < 2; i++) assert.isFalse(yield* Lock.withOwner(otherThread(tryLock(lock))))
        }).pipe(Lock.withLock(lock))
        assert.isTrue(yield* otherThread(tryLock(lock)))
        for (const member of members) assert.isFalse(yield* Lock.isLocked(member))
      }).pipe(Effect.scoped)
  )

  it.live("the example of the RedLock documentation: lock1, lock2, lock3 of three instances", () =>
    Effect.gen(function* () {
      const members = yield* Effect.forEach(["lock1", "lock2", "lock3"], (name) =>
        Effect.gen(function* () {
          const server = yield* RedisServer.start()
          return Lock.provide(Lock.make(name), yield* serviceAt(server.url))
        })
      )
      const lock = RedLock.make(members)
      // lock.lock()
      assert.isFalse(yield* Lock.withOwner(otherThread(tryLock(lock))).pipe(Lock.withLock(lock)))
      // lock.lock(10, SECONDS)
      assert.isTrue(yield* Lock.isHeldByCurrentOwner(lock).pipe(Lock.withLock(lock, { leaseTime: "1 minute" })))
      // lock.tryLock(100, 10, SECONDS)
      const patient = { waitTime: "100 seconds", leaseTime: "1 minute" } as const
      assert.strictEqual(yield* Lock.withLock(Effect.succeed("in"), lock, patient), "in")
      assert.isTrue(yield* otherThread(tryLock(lock)))
    }).pipe(Effect.scoped)
  )
})
