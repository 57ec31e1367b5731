/**
 * How long nobody leads during a rolling deploy, in virtual time.
 */
import { assert } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { LeaderElection, LockStore, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { type Store, changedStore, deaf, wrappedStore } from "../kit/wrappedStore.ts"
import { suitesOn } from "../kit/test.ts"

/** Every command takes 20 ms. */
const slow = (store: Store) => wrappedStore(store, ({ run }) => Effect.delay(Effect.suspend(run), "20 millis"))

suitesOn(LockStore.layerMemory)("a deploy of three instances", (test) => {
  for (const [messages, change, longestGapMillis] of [
    // the release, an acquisition and the announcement take 60 ms; the test's clock may run ahead of the fibers
    ["", slow, 500],
    [", although no message arrives", (store: Store) => deaf(slow(store)), 1000]
  ] as const) {
    for (const order of ["before", "after"] as const) {
      test(`Somebody leads again within ${longestGapMillis} ms when three instances are replaced, each ${order} its successor has started${messages}`, function* () {
        const election = LeaderElection.make(freshName("election"))
        const leaderships: Array<{ readonly began: number; readonly ended: number }> = []
        const lead = Effect.acquireUseRelease(
          Clock.currentTimeMillis,
          () => Effect.never,
          (began) => Effect.map(Clock.currentTimeMillis, (ended) => leaderships.push({ began, ended }))
        )
        const start = Effect.gen(function* () {
          const told = yield* Deferred.make<void>()
          const fiber = yield* background(
            Effect.raceFirst(LeaderElection.whileLeader(lead, election), Deferred.await(told)).pipe(
              Effect.provide(Layer.fresh(RedisLock.layerFromStore()).pipe(Layer.provide(changedStore(change))))
            )
          )
          return {
            close: Effect.gen(function* () {
              yield* Deferred.succeed(told, undefined)
              while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(1)
              yield* Fiber.join(fiber)
            })
          }
        })
        const instances = []
        for (let i = 0; i < 3; i++) instances.push(yield* start)
        yield* TestClock.adjust("5 seconds")
        for (let replaced = 0; replaced < 9; replaced++) {
          const old = instances.shift()!
          if (order === "before") yield* old.close
          instances.push(yield* start)
          yield* TestClock.adjust("3 seconds")
          if (order === "after") yield* old.close
          yield* TestClock.adjust("2 seconds")
        }
        for (const { close } of instances) yield* close
        const gaps = leaderships.slice(1).map(({ began }, i) => began - leaderships[i]!.ended)
        // each leader is followed by the candidate that has waited longest
        assert.isAtLeast(gaps.length, 6)
        assert.isAtLeast(Math.min(...gaps), 0)
        assert.isAtMost(Math.max(...gaps), longestGapMillis)
      })
    }
  }
})
