/**
 * What Redisson's own tests verify of its RLock, by the numbers of the project's list of behaviours.
 *
 * Not here, because it does not apply to locks that are held by a scope:
 *
 * - 8, the half "release by a thread that does not hold it": nobody can ask for it. A holding is released by whoever has
 *   it, and a holding of another owner is out of reach. The half "the holder's own release still works" is here.
 * - 9, "a second handle on the same name": locks are values without state, every use is a second handle.
 * - 11 is reported as `LockLost`, the answer to a release after the lease.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { Lock } from "effect-redis-lock"
import {
  clients,
  dyingClient,
  elapsed,
  fifteenTasks,
  forceRelease,
  held,
  holdCounts,
  hundredClients,
  isHeldByCurrentThread,
  isLocked,
  lockUnlockTwice,
  millisOf,
  onBothStores,
  onlyHolderReleases,
  otherClient,
  otherThread,
  reentrant,
  sixteenClients,
  storeAt,
  tryLock,
  waitEnds,
  watchdogMillis
} from "./kit.ts"
import { expectWarning } from "../run/logs.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"

const make = (name: string) => Lock.make(name)

onBothStores("RLock", (it) => {
  it.effect("1. acquire then release leaves the lock free; the same object can be used again", lockUnlockTwice(make))

  it.effect("2. isLocked: false before, true while held, false after", isLocked(make))

  it.effect("3. another thread sees isLocked true while held, false after", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      assert.isTrue(yield* Lock.withLock(otherThread(Lock.isLocked(lock)), lock))
      assert.isFalse(yield* otherThread(Lock.isLocked(lock)))
    })
  )

  it.effect("4. isHeldByCurrentOwner: false, true, false around a hold", isHeldByCurrentThread(make))

  it.effect("5. another thread of the same client is not the current owner during or after the hold", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const holder = yield* held(lock)
      assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
      yield* holder.letGo
      assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
    })
  )

  it.effect("6. hold count: 0, 1, 2, 1, 0", holdCounts(make))

  it.effect("7. trying is re-entrant, and refused to another thread also after one of two releases", reentrant(make))

  it.effect("8. nobody but the holder can release, and the holder's own release works", onlyHolderReleases(make))

  it.effect("9. force release frees a lock", forceRelease(make))

  it.effect("10. an explicit lease expires: a blocked second thread gets the lock when it is over", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const { millis, result: holder } = yield* elapsed(
        Effect.tap(held(lock, { leaseTime: "700 millis" }), () => otherThread(Lock.withLock(Effect.void, lock)))
      )
      assert.isAtLeast(millis, 699)
      yield* holder.letGo
    })
  )

  it.effect("11. releasing after the lease ran out fails", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const holder = yield* held(lock, { leaseTime: "300 millis" })
      yield* Effect.exit(holder.holding.awaitLost)
      assert.strictEqual((yield* Effect.flip(holder.holding.release)).reason, "Expired")
      yield* holder.letGo
    })
  )

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

  it.effect("13. releasing inner holds leaves the explicit lease, not the watchdog's", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const options = { leaseTime: "1 minute" } as const
      const { millis, result: left } = yield* elapsed(
        Effect.gen(function* () {
          yield* Effect.void.pipe(Lock.withLock(lock, options), Lock.withLock(lock, options))
          return millisOf(yield* Lock.remainingTime(lock))
        }).pipe(Lock.withLock(lock, options))
      )
      assert.isAtMost(left, 60_000)
      assert.isAtLeast(left, 60_000 - millis - 2)
    })
  )

  it.effect("14. waiting against a foreign holder ends when waitTime is over", waitEnds(make))

  it.effect("15. an uninterruptible acquisition goes on waiting when it is interrupted", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const holder = yield* held(lock)
      const waiting = yield* Effect.uninterruptible(Lock.withLock(Lock.isLocked(lock), lock)).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      const interruption = yield* Effect.forkChild(Fiber.interrupt(waiting), { startImmediately: true })
      // time to come in, which it must not
      yield* Effect.sleep("50 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* holder.letGo
      yield* Fiber.join(interruption)
      assert.isFalse(yield* Lock.isLocked(lock))
    })
  )

  it.effect("16. a client that dies while it holds: free after the watchdog's lease", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      // the client is gone, and nobody closes the scope of its holding
      const dies = dyingClient(Effect.provideService(Lock.scoped(lock), Scope.Scope, yield* Scope.make()))
      const { millis } = yield* elapsed(Effect.andThen(dies, Lock.withLock(Effect.void, lock)))
      assert.isAtLeast(millis, watchdogMillis - 1)
    })
  )

  it.effect("17. interrupting in the middle of trying leaves no lock behind", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      for (let i = 0; i < 20; i++) {
        const trying = yield* Effect.forkChild(tryLock(lock), { startImmediately: true })
        yield* Fiber.interrupt(trying)
        assert.isFalse(yield* Lock.isLocked(lock))
      }
    })
  )

  it.effect("31. a lock named after an entry of a map: free, held, free", () =>
    Effect.gen(function* () {
      const lock = Lock.make(`{${freshName("redisson")}}:entry 1:key`)
      assert.isFalse(yield* Lock.isLocked(lock))
      const state = yield* Lock.withLock(Lock.inspect(lock), lock)
      assert.strictEqual(state.holders.length, 1)
      assert.isFalse(yield* Lock.isLocked(lock))
    })
  )

  it.effect("20. 15 tasks of one client all complete", fifteenTasks(make))

  it.effect("21. 16 clients of 100 iterations all complete, one at a time", sixteenClients(make))

  it.effect("22. 100 clients of one section each all complete", hundredClients(make))

  it.effect("24. four concurrent timed acquisitions over two names all succeed", () =>
    Effect.gen(function* () {
      const names = [freshName("redisson"), freshName("redisson")]
      const all = yield* Effect.forEach(
        [...names, ...names],
        (name) => Effect.exit(Lock.withLock(Effect.void, name, { waitTime: "10 seconds" })),
        { concurrency: "unbounded" }
      )
      assert.isTrue(all.every(Exit.isSuccess))
    })
  )

  it.effect("32. an explicit owner holds, is seen to hold, and holds no more after the release", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      yield* Effect.gen(function* () {
        const holding = Option.getOrThrow(yield* Lock.tryScoped(lock))
        assert.isTrue(yield* Effect.timeout(Lock.isHeldByCurrentOwner(lock), "10 seconds"))
        yield* holding.release
        assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
      }).pipe(Effect.scoped, Lock.withOwner)
    })
  )

  it.effect("33. after one explicit owner released, the next one's attempt succeeds and is visible to all", () =>
    Effect.gen(function* () {
      const lock = freshName("redisson")
      const owner = Effect.gen(function* () {
        const holding = Option.getOrThrow(yield* Lock.tryScoped(lock))
        assert.isTrue(yield* otherClient(Lock.isLocked(lock)))
        return holding.owner
      }).pipe(Effect.scoped, Lock.withOwner)
      assert.notStrictEqual(yield* owner, yield* owner)
      assert.isFalse(yield* otherClient(Lock.isLocked(lock)))
    })
  )
})

describe("RLock on a Redis of its own", () => {
  const observer = (url: string) => bare({ url })

  it.live("18. with the server down, acquiring fails with an error instead of hanging", () =>
    Effect.gen(function* () {
      expectWarning(/^Lost the connection to Redis; connecting again\./)
      const server = yield* RedisServer.start()
      yield* Effect.gen(function* () {
        yield* server.kill
        const error = yield* Effect.flip(
          Lock.withLock(Effect.void, "down", { waitTime: "1 second", leaseTime: "1 minute" })
        )
        assert.strictEqual(error._tag, "LockStoreError")
      }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
    }).pipe(Effect.scoped)
  )

  it.live("23. 5000 tasks over 5 names need one subscribing connection, and leave no channel", () =>
    Effect.gen(function* () {
      const server = yield* RedisServer.start()
      const redis = yield* observer(server.url)
      let done = 0
      yield* Effect.gen(function* () {
        yield* Effect.forEach(
          Array.from({ length: 5000 }, (_, i) => `name-${i % 5}`),
          (name) =>
            Lock.withLock(
              Effect.sync(() => done++),
              name
            ),
          { concurrency: 500 }
        )
        const clientList = (yield* Effect.promise(() => redis.client("LIST"))) as string
        const connections = clientList.trim().split("\n").length - 1
        assert.isAtMost(connections, 2)
        yield* until("no channel is left", async () => ((await redis.pubsub("CHANNELS")) as Array<string>).length === 0)
      }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
      assert.strictEqual(done, 5000)
    }).pipe(Effect.scoped)
  )

  // One node that owns all slots: it refuses scripts whose keys are not of one slot, as every cluster does. Clusters of
  // several nodes need a driver that knows them.
  const clusterNode = Effect.gen(function* () {
    const server = yield* RedisServer.start({ args: ["--cluster-enabled", "yes"] })
    const redis = yield* observer(server.url)
    yield* Effect.promise(() => redis.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383"))
    yield* until("the cluster is ready", async () => String(await redis.cluster("INFO")).includes("cluster_state:ok"))
    return server
  })

  it.live("25. in cluster mode: acquire, isLocked, release, isLocked, again and again", () =>
    Effect.gen(function* () {
      const server = yield* clusterNode
      yield* Effect.gen(function* () {
        for (const lock of ["plain", "{tag}:x", "a{b}c", "plain"]) {
          assert.isTrue(yield* Lock.withLock(Lock.isLocked(lock), lock))
          assert.isFalse(yield* Lock.isLocked(lock))
        }
      }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
    }).pipe(Effect.scoped)
  )

  it.live("26. in cluster mode: 30 rounds of trying and releasing do not fail", () =>
    Effect.gen(function* () {
      const server = yield* clusterNode
      yield* Effect.gen(function* () {
        for (let i = 0; i < 30; i++) assert.isTrue(yield* tryLock(`lock-${i % 3}`))
      }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
    }).pipe(Effect.scoped)
  )

  it.live("27. keyspace events tell of a lease that ran out and of a release, until one stops listening", () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.scoped)
  )
})
