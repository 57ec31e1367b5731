/**
 * What Redisson's own tests verify of its RLock, by the numbers of the project's list of behaviours, where no other test here
 * proves it.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Scope } from "effect"
import { Lock } from "effect-redis-lock"
import { clients, elapsed, held, millisOf, onBothStores, storeAt } from "./kit.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"
import { background } from "../kit/background.ts"

onBothStores("RLock", (it) => {
  it.effect(
    "12. the remaining time is the lease, gone after the release, and the watchdog's for the next acquire",
    () =>
      Effect.gen(function* () {
        const lock = Lock.make(freshName("redisson"))
        const hour = 3_600_000
        const { millis, result: first } = yield* elapsed(
          Lock.withLock(Lock.remainingTime(lock), lock, { leaseTime: hour })
        )
        assert.isAtMost(millisOf(first), hour)
        assert.isAtLeast(millisOf(first), hour - millis - 2)
        assert.deepStrictEqual(yield* Lock.remainingTime(lock), Option.none())
        const second = yield* Lock.withLock(Lock.remainingTime(lock), lock)
        assert.isAtMost(millisOf(second), 30_000)
        assert.isAbove(millisOf(second), 0)
      })
  )

  it.effect("15. an uninterruptible acquisition goes on waiting when it is interrupted", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const holder = yield* held(lock)
      const waiting = yield* Effect.uninterruptible(Lock.withLock(Lock.isLocked(lock), lock)).pipe(background)
      const interruption = yield* background(Fiber.interrupt(waiting))
      // time to come in, which it must not
      yield* Effect.sleep("50 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* holder.letGo
      yield* Fiber.join(interruption)
      assert.isFalse(yield* Lock.isLocked(lock))
    })
  )
})

const observer = (url: string) => bare({ url })

testLive(
  "23. 5000 tasks over 5 names take turns under each, need one subscribing connection, and leave no channel",
  function* () {
    const server = yield* RedisServer.start()
    const redis = yield* observer(server.url)
    const inside = new Set<string>()
    const section = (name: string) =>
      Effect.gen(function* () {
        assert.isFalse(inside.has(name), name)
        inside.add(name)
        yield* Effect.yieldNow
        inside.delete(name)
      })
    let done = 0
    yield* Effect.gen(function* () {
      yield* Effect.forEach(
        Array.from({ length: 5000 }, (_, i) => `name-${i % 5}`),
        (name) => Effect.tap(section(name), () => Effect.sync(() => done++)).pipe(Lock.withLock(name)),
        { concurrency: 500 }
      )
      const clientList = (yield* Effect.promise(() => redis.client("LIST"))) as string
      const connections = clientList.trim().split("\n").length - 1
      assert.isAtMost(connections, 2)
      yield* until("no channel is left", async () => ((await redis.pubsub("CHANNELS")) as Array<string>).length === 0)
    }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
    assert.strictEqual(done, 5000)
  }
)

testLive("27. keyspace events tell of a lease that ran out and of a release, until one stops listening", function* () {
  const server = yield* RedisServer.start({ args: ["--notify-keyspace-events", "Kgx"] })
  const redis = yield* observer(server.url)
  const events: Array<string> = []
  yield* Effect.promise(() => redis.psubscribe("__keyspace@0__:observed*"))
  redis.on("pmessage", (_pattern, channel: string, event: string) => events.push(`${channel.slice(15)} ${event}`))
  const seen = (event: string) => until(`the event "${event}" is told`, () => events.includes(event))
  yield* Effect.gen(function* () {
    yield* Lock.withLock(Effect.void, "observed-release")
    yield* seen("observed-release del")
    yield* Effect.exit(Lock.withLock(Effect.never, "observed-lease", { leaseTime: 200 }))
    yield* Effect.provideService(
      Lock.scoped("observed-expiry", { leaseTime: "2 seconds" }),
      Scope.Scope,
      yield* Scope.make()
    )
    yield* seen("observed-expiry expired")
    yield* Effect.promise(() => redis.punsubscribe())
    const before = events.length
    yield* Lock.withLock(Effect.void, "observed-release")
    assert.strictEqual(events.length, before)
  }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
})
