/**
 * What Redisson's own tests verify of its RedissonMultiLock, by the numbers of the project's list of behaviours, where no other test
 * here proves it.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { Lock, MultiLock, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"

const serviceAt = (url: string) =>
  Effect.map(Layer.build(Layer.fresh(Layer.provide(RedisLock.layer(), IoRedis.layer({ url })))), (context) =>
    Context.get(context, RedisLock.RedisLock)
  )

/** Three names on one service. */
const three = Effect.map(serviceAt(redisUrl), (service) => {
  const run = crypto.randomUUID()
  return MultiLock.make([1, 2, 3].map((n) => Lock.provide(Lock.make(`redisson:${run}:${n}`), service)))
})

/** Another thread: a fiber with an owner of its own. */
const otherThread = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.flatMap(Effect.forkChild(self), Fiber.join)

const tryLock = (lock: Lock.Lock<never, any, any>) => Effect.map(Effect.scoped(Lock.tryScoped(lock)), Option.isSome)

describe("RedissonMultiLock", () => {
  it.live("136. ten threads tryLock(wait -1, lease 10 s): exactly one succeeds, all return within 1 s", () =>
    Effect.gen(function* () {
      const lock = yield* three
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
})
