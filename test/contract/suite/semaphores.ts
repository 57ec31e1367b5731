/**
 * What the tests of semaphores and permit semaphores share, on any store and under either time.
 */
import { onlyMessages } from "../../kit/onlyMessages.ts"
import { failure } from "../../kit/exits.ts"
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { LockStore, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { redisUrl } from "../../kit/server/redisUrl.ts"
import { type Store, changedStore, wrappedStore } from "../../kit/wrappedStore.ts"
import { observedStore, waiterSleepsOn } from "../../kit/observedStore.ts"
import { bare } from "../../kit/server/bareRedis.ts"
import { runOperation } from "../../kit/storeOperations.ts"
import { background } from "../../kit/background.ts"
import { asAnotherClient } from "../../kit/anotherClient.ts"
import { suitesOn } from "../../kit/test.ts"

export type Time = "virtual" | "real"

export const semaphoreContract = <E0>(store: Layer.Layer<LockStore.LockStore, E0>, time: Time) => {
  const virtual = time === "virtual"
  /** Of the clients of tests that wait for renewals; others have leases that a busy machine does not outlast. */
  const watchdogLeaseTime = virtual ? Duration.seconds(30) : Duration.seconds(6)
  // messages must do: nobody here waits for the fallback interval, unless a test says so
  const options: RedisLock.RedisLockOptions = { watchdogLeaseTime: "30 seconds", fallbackInterval: "10 minutes" }
  const clients = onlyMessages(options)(RedisLock.layerFromStore(options))
  const elsewhere = asAnotherClient(clients)

  const breath = virtual ? Effect.yieldNow : Effect.sleep("2 millis")
  const pass = (duration: Duration.Input) => (virtual ? TestClock.adjust(duration) : Effect.sleep(duration))
  const channelOf = (key: string) => `redisson_sc:{${key}}`
  /** Waits until all waiters for permits hear the channel, and sleep. */
  const waiting = (key: string) => waiterSleepsOn(channelOf(key))
  /** Waits until a condition holds, without time passing. */
  const until = (condition: () => boolean) =>
    Effect.gen(function* () {
      while (!condition()) yield* breath
    })

  /** A day later the markers of permits that are held have ended. On Redis nobody waits for that: see {@link aDayLater}. */
  const markersEnd = (key: string) =>
    virtual
      ? pass("25 hours")
      : Effect.scoped(
          Effect.gen(function* () {
            const redis = yield* bare({ url: redisUrl })
            const markers = yield* Effect.promise(() => redis.keys(`effect_redis_lock_grant:{${key}}:*`))
            assert.strictEqual(yield* Effect.promise(() => redis.del(...markers)), 1)
          })
        )

  /** The client gives permits back as if it had held them for longer than a day. */
  const aDayLater = (store: Store) =>
    wrappedStore(store, ({ args, keys, operation, run }) =>
      operation === "semaphore/return" ? runOperation(store, operation, keys, args.with(1, 1)) : run()
    )

  const outcome = <A, E>(fiber: Fiber.Fiber<A, E>): Effect.Effect<Exit.Exit<A, E>> =>
    virtual
      ? Effect.gen(function* () {
          while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
          return fiber.pollUnsafe()!
        })
      : Fiber.await(fiber)
  const succeeded = <A, E>(fiber: Fiber.Fiber<A, E>) => Effect.flatten(outcome(fiber))
  /** A client of the store, as somebody changed it. */
  const over =
    (change: (store: Store) => Store, settings: RedisLock.RedisLockOptions = options) =>
    <A, E, R>(self: Effect.Effect<A, E, R>) =>
      Effect.provide(self, RedisLock.layerFromStore(settings).pipe(Layer.provide(changedStore(change))))
  /** The first command of an operation fails with unknown outcome: it has run, or has not. */
  const losing = (losesFirst: LockStore.Operation, hasRun: boolean) => (store: Store) => {
    let lost = false
    return wrappedStore(store, ({ fail, operation, run }) => {
      if (operation !== losesFirst || lost) return run()
      lost = true
      return hasRun ? Effect.andThen(run(), fail("TimedOut")) : fail("TimedOut")
    })
  }

  /** Both kinds, where they do the same. */
  const kinds = [
    {
      kind: "a semaphore",
      acquiring: "semaphore/acquire",
      returning: "semaphore/return",
      make: (name: string, permits?: number) => {
        const semaphore = Semaphore.make(name, { permits })
        return {
          section: (n: number, options?: Semaphore.AcquireOptions) => Semaphore.withPermits(semaphore, n, options),
          available: Semaphore.availablePermits(semaphore),
          add: (n: number) => Semaphore.addPermits(semaphore, n)
        }
      }
    },
    {
      kind: "a permit semaphore",
      acquiring: "permit_semaphore/acquire",
      returning: "permit_semaphore/release",
      make: (name: string, permits?: number) => {
        const semaphore = PermitSemaphore.make(name, { permits })
        return {
          section: (n: number, options?: Semaphore.AcquireOptions) =>
            PermitSemaphore.withPermits(semaphore, n, options),
          available: PermitSemaphore.availablePermits(semaphore),
          add: (n: number) => PermitSemaphore.addPermits(semaphore, n)
        }
      }
    }
  ] as const

  /** Forks one that holds permits until it is told to let go. */
  const holding = Effect.fnUntraced(function* (
    section: (
      n: number,
      options?: Semaphore.AcquireOptions
    ) => <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, unknown, R | RedisLock.RedisLock>,
    permits: number
  ) {
    const held = yield* Deferred.make<void>()
    const letGo = yield* Deferred.make<void>()
    const fiber = yield* Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(letGo)).pipe(
      section(permits),
      background
    )
    yield* Effect.raceFirst(Deferred.await(held), Effect.andThen(Fiber.join(fiber), Effect.never))
    return Effect.andThen(Deferred.succeed(letGo, undefined), Fiber.await(fiber))
  })

  const suite = suitesOn(Layer.provideMerge(clients, observedStore(store)), { excludeTestServices: !virtual })

  return {
    options,
    virtual,
    watchdogLeaseTime,
    elsewhere,
    breath,
    pass,
    channelOf,
    waiting,
    until,
    markersEnd,
    aDayLater,
    outcome,
    succeeded,
    failure,
    over,
    losing,
    kinds,
    holding,
    suite
  }
}
