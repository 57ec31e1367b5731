/**
 * What stands in Redis, byte for byte: the keys, fields, channels and payloads of Redisson's RLock. A Java client is played
 * by raw commands.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { FairLock, Lock, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { command, messages, raw } from "./raw.ts"
import { suitesOn } from "../kit/test.ts"

// without messages a waiter here would sleep for five minutes
const locks = Layer.provide(RedisLock.layer({ fallbackInterval: "5 minutes" }), IoRedis.layer({ url: redisUrl }))

const unique = crypto.randomUUID()

const names = [
  {
    name: `order ${unique}`,
    channel: `redisson_lock__channel:{order ${unique}}`,
    token: `redisson_lock_token:{order ${unique}}`
  },
  {
    name: `{order ${unique}}:5`,
    channel: `redisson_lock__channel:{order ${unique}}:5`,
    token: `redisson_lock_token:{order ${unique}}:5`
  },
  { name: `a{${unique}}`, channel: `redisson_lock__channel:a{${unique}}`, token: `redisson_lock_token:a{${unique}}` },
  { name: `a{${unique}`, channel: `redisson_lock__channel:a{${unique}`, token: `redisson_lock_token:a{${unique}` }
]

suitesOn(Layer.merge(locks, raw), { excludeTestServices: true })("in Redis", (test) => {
  for (const { channel, name, token } of names) {
    test(`${name.replaceAll(unique, "")}: a hash of owner and hold count with a lease, a message "0" when it is free`, function* () {
      const heard = yield* messages(channel)
      const { clientId } = yield* RedisLock.RedisLock
      yield* Effect.gen(function* () {
        const holding = yield* Lock.currentHolding(name)
        assert.match(holding.owner, new RegExp(`^${clientId}:[0-9]+$`))
        assert.deepStrictEqual(yield* command((redis) => redis.hgetall(name)), { [holding.owner]: "1" })
        const left = yield* command((redis) => redis.pttl(name))
        assert.isTrue(left > 20_000 && left <= 30_000)
        assert.strictEqual(yield* command((redis) => redis.get(token)), String(holding.token))
        assert.isAbove(yield* command((redis) => redis.pttl(token)), 86_000_000)
        const inside = command((redis) => redis.hget(name, holding.owner))
        // a re-entry is counted in the process alone
        assert.strictEqual(yield* Lock.withLock(inside, name), "1")
        assert.strictEqual(yield* inside, "1")
        assert.deepStrictEqual(yield* heard, [])
      }).pipe(Lock.withLock(name))
      assert.strictEqual(yield* command((redis) => redis.exists(name)), 0)
      assert.deepStrictEqual(yield* heard, ["0"])
    })

    test(`${name.replaceAll(unique, "")}: what a Java client holds is respected, and its message wakes`, function* () {
      const java = "2a5b1f3e-0000-4000-8000-000000000001:42"
      yield* command((redis) => redis.multi().hset(name, java, 1).pexpire(name, 300_000).exec())
      const error = yield* Effect.flip(Lock.withLock(Effect.void, name, { waitTime: 0 }))
      assert.strictEqual(error._tag === "LockTimeout" ? error.holder?.owner : error._tag, java)
      const state = yield* Lock.inspect(name)
      assert.deepStrictEqual(
        state.holders.map(({ holdCount, mode, owner }) => ({ owner, holdCount, mode })),
        [{ owner: java, holdCount: 1, mode: "exclusive" }]
      )

      const entered = yield* Deferred.make<void>()
      const waiting = yield* Lock.withLock(Deferred.succeed(entered, undefined), name).pipe(Effect.forkChild)
      // it waits once it listens
      let listeners = 0
      while (listeners === 0) {
        listeners = (yield* command((redis) => redis.pubsub("NUMSUB", channel)))[1] as number
      }
      assert.isUndefined(waiting.pollUnsafe())
      yield* command((redis) => redis.multi().del(name).publish(channel, "0").exec())
      yield* Deferred.await(entered)
      yield* Fiber.join(waiting)
    })
  }

  for (const [kind, make] of Object.entries({
    Lock: Lock.make,
    FairLock: FairLock.make,
    readLock: (name: string) => ReadWriteLock.make(name).readLock,
    writeLock: (name: string) => ReadWriteLock.make(name).writeLock
  })) {
    test(`A renewal gives a ${kind} the expiry back that somebody has removed`, function* () {
      const name = `persistent ${kind} ${unique}`
      const holding = yield* Lock.scoped(make(name))
      const keys = [name, ...(kind === "readLock" ? [`{${name}}:${holding.owner}:rwlock_timeout:1`] : [])]
      for (const key of keys) assert.strictEqual(yield* command((redis) => redis.persist(key)), 1)
      yield* holding.renew()
      for (const key of keys) assert.isAbove(yield* command((redis) => redis.pttl(key)), 0)
    })
  }

  test("A forced release deletes the hash and sends one message", function* () {
    const name = `forced ${unique}`
    const heard = yield* messages(`redisson_lock__channel:{${name}}`)
    yield* command((redis) => redis.hset(name, "2a5b1f3e-0000-4000-8000-000000000001:42", 3))
    assert.isTrue(yield* Lock.forceRelease(name))
    assert.isFalse(yield* Lock.forceRelease(name))
    assert.deepStrictEqual(yield* heard, ["0"])
    assert.strictEqual(yield* command((redis) => redis.exists(name)), 0)
  })

  test("The counter of a Java RFencedLock continues to count by one and gets no expiry", function* () {
    const name = `fenced ${unique}`
    const key = `redisson_lock_token:{${name}}`
    yield* command((redis) => redis.set(key, 41))
    const token = Effect.map(Lock.currentHolding(name), (holding) => holding.token).pipe(Lock.withLock(name))
    assert.strictEqual(yield* token, 42n)
    assert.strictEqual(yield* token, 43n)
    assert.strictEqual(yield* command((redis) => redis.pttl(key)), -1)
    yield* command((redis) => redis.del(key))
  })

  test("A token is never lower than the last, even if the server's clock has stepped back", function* () {
    const name = `clock ${unique}`
    const future = 9_000_000_000_000_000
    yield* command((redis) => redis.set(`redisson_lock_token:{${name}}`, future, "PX", 60_000))
    const token = Effect.map(Lock.currentHolding(name), (holding) => holding.token).pipe(Lock.withLock(name))
    assert.strictEqual(yield* token, BigInt(future) + 1n)
    assert.strictEqual(yield* token, BigInt(future) + 2n)
  })
})
