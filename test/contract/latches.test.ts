/**
 * What latches must do on every store: on memory under virtual time, and on Redis in real time.
 */
import { assert } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import {
  CountDownLatch,
  InvalidLockName,
  LatchTimeout,
  Lock,
  LockStore,
  LockStoreError,
  RedisLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { onRedis } from "../kit/stores.ts"
import { type Store, changedStore, deaf, recording, wrappedStore } from "../kit/wrappedStore.ts"
import { ObservedStore, observedStore, waiterSleepsOn } from "../kit/observedStore.ts"
import { background } from "../kit/background.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { freshName } from "../kit/names.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { suitesOn } from "../kit/test.ts"

const channelOf = (latch: string) => `redisson_countdownlatch__channel__{${latch}}`

const contract = <E0>(name: string, store: Layer.Layer<LockStore.LockStore, E0>, time: "virtual" | "real"): void => {
  const virtual = time === "virtual"
  // messages must do: nobody here waits for the fallback interval, unless a test says so
  const options: RedisLock.RedisLockOptions = { fallbackInterval: "10 minutes" }
  const clients = closingSubscriptions(100)(RedisLock.layerFromStore(options))
  const elsewhere = asAnotherClient(clients)
  const breath = virtual ? Effect.yieldNow : Effect.sleep("2 millis")

  /** A client of the store, as somebody changed it. */
  const over =
    (
      change: (store: Store) => Store,
      fallbackInterval: RedisLock.RedisLockOptions["fallbackInterval"] = "10 minutes"
    ) =>
    <A, E, R>(self: Effect.Effect<A, E, R>) =>
      Effect.provide(
        self,
        RedisLock.layerFromStore({ ...options, fallbackInterval }).pipe(
          closingSubscriptions(100),
          Layer.provide(changedStore(change))
        )
      )

  /** Waits until this client waits for the latch, and hears its channel. */
  const waiting = (latch: string) => waiterSleepsOn(channelOf(latch))
  /** Waits until nobody waits for the latch. */
  const idle = (latch: string) =>
    Effect.flatMap(ObservedStore, (traffic) =>
      Effect.gen(function* () {
        while (!traffic.isUnheard(channelOf(latch))) yield* virtual ? TestClock.adjust("10 millis") : breath
      })
    )
  /** Waits for a fiber, letting time pass. */
  const joined = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>) {
    if (virtual) while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
    return yield* Fiber.join(fiber)
  })

  const suite = suitesOn(Layer.provideMerge(clients, observedStore(store)), { excludeTestServices: !virtual })

  suite(`latches on ${name}`, (test) => {
    test("Passing an open latch costs one command", function* () {
      const operations: Array<string> = []
      yield* CountDownLatch.await(freshName("latch")).pipe(over(recording(operations)))
      assert.deepStrictEqual(operations, ["latch/count"])
    })

    test("A latch wakes all waiters with one look at the count, whoever counts down", function* () {
      const latch = freshName("latch")
      const operations: Array<string> = []
      yield* CountDownLatch.trySetCount(latch, 1)
      yield* Effect.gen(function* () {
        const waiters = []
        for (let i = 0; i < 50; i++) waiters.push(yield* background(CountDownLatch.await(latch)))
        yield* waiting(latch)
        // for the first, for all who came before its answer, and when the subscription stood; on memory answers come at once
        assert.isAtMost(operations.length, virtual ? 52 : 4)
        const before = operations.length
        yield* elsewhere(CountDownLatch.countDown(latch))
        for (const waiter of waiters) yield* Fiber.join(waiter)
        assert.strictEqual(operations.length, before + 1)
        yield* idle(latch)
      }).pipe(over(recording(operations)))
    })

    test("A lost message of a latch costs at most the fallback interval", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.trySetCount(latch, 1)
      yield* Effect.gen(function* () {
        const waiter = yield* background(CountDownLatch.await(latch))
        yield* waiting(latch)
        yield* elsewhere(CountDownLatch.countDown(latch))
        if (virtual) {
          yield* TestClock.adjust("700 millis")
          assert.isUndefined(waiter.pollUnsafe())
          yield* TestClock.adjust("600 millis")
        }
        yield* Fiber.join(waiter)
      }).pipe(over(deaf, virtual ? "1 second" : "200 millis"))
    })

    test("A wait for a latch notices a count down that happens while it looks", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.trySetCount(latch, 2)
      let isArmed = false
      const traffic = yield* ObservedStore
      const heard = () => traffic.signals(channelOf(latch))
      const context = yield* Effect.context<RedisLock.RedisLock | LockStore.LockStore>()
      const countDown = Effect.provideContext(Effect.orDie(elsewhere(CountDownLatch.countDown(latch))), context)
      /** Once, before the count is known, it falls to zero and the message of that is heard. */
      const interfering = (store: Store) =>
        wrappedStore(store, ({ operation, run }) =>
          operation !== "latch/count" || !isArmed
            ? run()
            : Effect.gen(function* () {
                isArmed = false
                const count = yield* run()
                const before = heard()
                yield* countDown
                yield* countDown
                while (heard() === before) yield* breath
                return count
              })
        )
      yield* Effect.gen(function* () {
        const first = yield* background(CountDownLatch.await(latch))
        yield* waiting(latch)
        isArmed = true
        const second = yield* background(CountDownLatch.await(latch))
        yield* Fiber.join(first)
        yield* Fiber.join(second)
      }).pipe(over(interfering))
    })

    test("A latch is open for its waiters when it is deleted", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.trySetCount(latch, 3)
      const waiter = yield* background(CountDownLatch.await(latch))
      yield* waiting(latch)
      assert.isTrue(yield* elsewhere(CountDownLatch.delete(latch)))
      yield* Fiber.join(waiter)
    })

    test("A latch whose key is gone, of which no message tells, is open for its waiters after the fallback interval", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.trySetCount(latch, 3)
      yield* Effect.gen(function* () {
        const waiter = yield* background(CountDownLatch.await(latch))
        yield* waiting(latch)
        // the message goes to another channel
        const store = yield* LockStore.LockStore
        yield* runOperation(store, "latch/delete", [latch, `silent:${latch}`], [store.publish])
        yield* joined(waiter)
      }).pipe(over((store) => store, "200 millis"))
    })

    test("Fibers that arrive while a latch is set again wait", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.trySetCount(latch, 1)
      const first = yield* background(CountDownLatch.await(latch))
      yield* waiting(latch)
      yield* CountDownLatch.countDown(latch)
      yield* Fiber.join(first)
      assert.isTrue(yield* CountDownLatch.trySetCount(latch, 1))
      const second = yield* background(CountDownLatch.await(latch))
      yield* waiting(latch)
      assert.isUndefined(second.pollUnsafe())
      yield* CountDownLatch.countDown(latch)
      yield* Fiber.join(second)
    })

    test("A wait for a latch ends after the wait time, and not before the count is known", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.await(latch, { waitTime: 0 })
      yield* CountDownLatch.trySetCount(latch, 2)
      const others = yield* background(CountDownLatch.await(latch))
      for (const waitTime of [0, 150]) {
        const startedAt = yield* Clock.currentTimeMillis
        const error = yield* joined(yield* background(Effect.flip(CountDownLatch.await(latch, { waitTime }))))
        // time passes here in steps of 100 ms
        if (virtual) assert.isAtMost((yield* Clock.currentTimeMillis) - startedAt, waitTime + 100)
        assert.instanceOf(error, LatchTimeout)
        assert.strictEqual(error.count, 2)
        assert.include(error.message, `Latch "${latch}" did not open${waitTime === 0 ? ";" : " within"}`)
      }
      assert.isUndefined(others.pollUnsafe())
      yield* Fiber.interrupt(others)
      yield* idle(latch)
    })

    test("All waiters of a latch learn that Redis refuses", function* () {
      const latch = freshName("latch")
      yield* CountDownLatch.trySetCount(latch, 1)
      const broken = yield* Deferred.make<void>()
      const breaking = (store: Store) =>
        wrappedStore(store, ({ fail, run }) =>
          Effect.flatMap(Deferred.isDone(broken), (isBroken) => (isBroken ? fail("NoPermission") : run()))
        )
      yield* Effect.gen(function* () {
        const waiters = []
        for (let i = 0; i < 3; i++) waiters.push(yield* background(Effect.flip(CountDownLatch.await(latch))))
        yield* waiting(latch)
        yield* Deferred.succeed(broken, undefined)
        yield* elsewhere(CountDownLatch.countDown(latch))
        for (const waiter of waiters) assert.strictEqual((yield* Fiber.join(waiter))._tag, "LockStoreError")
        yield* idle(latch)
      }).pipe(over(breaking))
    })

    test("A latch refuses a name whose channel is in another slot", function* () {
      const slots = (store: Store): Store => ({ ...store, slot: (key) => (key.includes("channel") ? 1 : 2) })
      const error = yield* CountDownLatch.await("a{b}").pipe(over(slots), Effect.flip)
      assert.instanceOf(error, InvalidLockName)
      assert.include(error.message, "another slot")
    })

    test("A latch says what else is under its name", function* () {
      const latch = freshName("latch")
      yield* Effect.gen(function* () {
        for (const use of [
          CountDownLatch.await(latch),
          CountDownLatch.count(latch),
          CountDownLatch.countDown(latch),
          CountDownLatch.delete(latch),
          CountDownLatch.trySetCount(latch, 1)
        ]) {
          const error = yield* Effect.flip(use as Effect.Effect<unknown, unknown>)
          assert.instanceOf(error, LockStoreError)
          assert.strictEqual(error.reason, "WrongType")
          assert.include(error.message, `"${latch}" is not a CountDownLatch`)
        }
        assert.isTrue(yield* Lock.isHeldByCurrentOwner(latch))
      }).pipe(Lock.withLock(latch))
    })

    test("A latch can be bound to a service, and reached through a key prefix", function* () {
      const latch = freshName("latch")
      const service = yield* RedisLock.RedisLock
      const bound = CountDownLatch.make(`app:${latch}`).pipe(CountDownLatch.provide(service))
      yield* CountDownLatch.trySetCount(latch, 2).pipe(
        Effect.provide(Layer.fresh(RedisLock.layerFromStore({ keyPrefix: "app:" })))
      )
      assert.strictEqual(yield* CountDownLatch.count(bound), 2)
      assert.isTrue(yield* CountDownLatch.delete(bound))
    })
  })
}

contract("memory", LockStore.layerMemory, "virtual")
contract("Redis", onRedis, "real")
