/**
 * What the texts of the contract have at hand: a kind of lock on a store, and time that passes.
 */
import { failure } from "../../kit/exits.ts"
import { Duration, Effect, Exit, Fiber, Layer, Option } from "effect"
import { type Holding, Lock, type LockReentered, type LockTimeout, LockStore, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { typeOfKey } from "../../kit/storeOperations.ts"
import { changedStore, wrappedStore } from "../../kit/wrappedStore.ts"
import { asAnotherClient } from "../../kit/anotherClient.ts"
import { freshName } from "../../kit/names.ts"
import { holdUntilTold } from "../../kit/sections.ts"
import { suitesOn } from "../../kit/test.ts"

/** A lock of any kind. */
export type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered | LockTimeout>

export interface Backend {
  readonly name: string
  readonly store: Layer.Layer<LockStore.LockStore, unknown>
  readonly time: "virtual" | "real"
  /** Whether it is kept by a majority of servers, which need not agree on the last writer's token. */
  readonly isQuorum?: boolean
}

export interface Kind {
  readonly name: string
  readonly make: (name: string, options?: Lock.AcquireOptions) => AnyLock
  /** Whoever holds this keeps it off. Default: itself. */
  readonly rival?: (name: string) => AnyLock
  readonly mode: "exclusive" | "read" | "write"
  readonly reentrant: boolean
  /** Whether it asks by the clock, and is never told. */
  readonly polls?: boolean
}

export type Contract = ReturnType<typeof contractOf>

export const contractOf = ({ isQuorum = false, store, time }: Backend, kind: Kind) => {
  const virtual = time === "virtual"
  const { make } = kind
  const rival = (lock: AnyLock): AnyLock => (kind.rival ?? make)(lock.name)
  const isShared = kind.mode === "read"
  const freshLock = Effect.sync(() => make(freshName()))

  // Leases in real time are short enough to wait for, and long enough for a busy machine to do a few round trips in.
  const shortLease = virtual ? Duration.seconds(5) : Duration.seconds(2)
  const options: RedisLock.RedisLockOptions = { watchdogLeaseTime: "30 seconds", fallbackInterval: "1 second" }
  /** The lease of {@link hasty}. */
  const watchdogLease = virtual ? Duration.seconds(30) : Duration.seconds(6)

  /** The store, and what is asked of it: how often it denied a lock, and which channels it was asked for. */
  const denied = new Map<string, number>()
  const channels = new Set<string>()
  const observed = changedStore((store) => ({
    ...wrappedStore(store, ({ keys, operation, run }) =>
      Effect.tap(run(), (reply) =>
        Effect.sync(() => {
          if (operation.endsWith("/acquire") && typeof reply !== "number") denied.set(keys[0]!, denials(keys[0]!) + 1)
        })
      )
    ),
    subscribe: (channel) => {
      channels.add(channel)
      return store.subscribe(channel)
    }
  })).pipe(Layer.provide(store))
  const denials = (name: string) => denied.get(name) ?? 0
  /** Waits until a lock was denied so many times more, that is, until so many wait who did not before. */
  const untilDenied = <A, E, R>(lock: AnyLock, times: number, self: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const before = denials(lock.name)
      return Effect.tap(self, () => until(Effect.sync(() => denials(lock.name) >= before + times)))
    })

  const clients = RedisLock.layerFromStore(options)
  /** Runs an effect as another client of the same store. */
  const elsewhere = asAnotherClient(clients)

  /** Another client, for tests that wait for renewals, or for the end of a lease that is not renewed. */
  const hasty = asAnotherClient(RedisLock.layerFromStore({ ...options, watchdogLeaseTime: watchdogLease }))

  const pass = (duration: Duration.Duration) => (virtual ? TestClock.adjust(duration) : Effect.sleep(duration))

  /** Waits for a fiber, letting time pass. */
  const outcome = <A, E>(fiber: Fiber.Fiber<A, E>): Effect.Effect<Exit.Exit<A, E>> =>
    virtual
      ? Effect.gen(function* () {
          while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
          return fiber.pollUnsafe()!
        })
      : Fiber.await(fiber)

  const succeeded = <A, E>(fiber: Fiber.Fiber<A, E>) => Effect.flatten(outcome(fiber))

  /** Waits until a condition holds, letting time pass. */
  const until = <E, R>(condition: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
    Effect.gen(function* () {
      while (!(yield* condition)) yield* pass(Duration.millis(10))
    })

  /** Waits until the watchdog has renewed a lock so many times more: its lease, which only shrinks otherwise, has grown. */
  const renewed = Effect.fnUntraced(function* (lock: AnyLock, times: number) {
    let last = Duration.infinity
    for (let seen = 0; seen < times;) {
      // a lock that is free now has not been renewed
      const left = Option.getOrThrow(yield* elsewhere(Lock.remainingTime(lock)))
      if (Duration.isGreaterThan(left, last)) seen++
      last = left
      yield* pass(Duration.times(watchdogLease, 0.02))
    }
  })

  /** Forks what holds a lock until it is told to let go. */
  const holdBy = (client: typeof elsewhere) =>
    Effect.fnUntraced(function* (lock: AnyLock, acquire?: Lock.AcquireOptions) {
      const { acquired, end } = yield* holdUntilTold((stay: (holding: Holding) => Effect.Effect<void>) =>
        Lock.scoped(lock, acquire).pipe(Effect.flatMap(stay), Effect.scoped, client)
      )
      return { holding: acquired, letGo: end }
    })
  const holdElsewhere = holdBy(elsewhere)
  const hold = holdBy(((self) => self) as typeof elsewhere)

  return {
    kind,
    isShared,
    virtual,
    isQuorum,
    suite: suitesOn(Layer.provideMerge(clients, observed), { excludeTestServices: !virtual }),
    make,
    rival,
    freshName,
    freshLock,
    shortLease,
    options,
    watchdogLease,
    elsewhere,
    hasty,
    renewed,
    pass,
    outcome,
    succeeded,
    failure,
    until,
    denials,
    untilDenied,
    channels,
    typeOf: typeOfKey,
    hold,
    holdElsewhere
  }
}
