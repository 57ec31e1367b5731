/**
 * What the tests of Redisson's behaviours share: clients, threads, and the behaviours that Redisson verifies of every kind of
 * lock alike, as functions of the kind.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { type Holding, Lock, type LockReentered, type LockTimeout, LockStore, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { expectWarning } from "../run/logs.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { holdUntilTold } from "../kit/sections.ts"
// loads the scripts of the memory store: virtual time waits for no import
import "../simulation/memory.ts"
import { VirtualTime } from "../simulation/virtualTime.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"

/** With leases of 30 seconds: on a busy machine a client may get nowhere for longer than a short lease lasts. */
export const clients = closingSubscriptions(100)(RedisLock.layerFromStore())
export const otherClient = asAnotherClient(clients)

/** The watchdog's lease of {@link hastyClient}. */
export const watchdogMillis = 4000
const hastyClients = closingSubscriptions(100)(RedisLock.layerFromStore({ watchdogLeaseTime: watchdogMillis }))

/** Another client, for tests of how its leases are renewed, or end. */
export const hastyClient = asAnotherClient(hastyClients)

/** A hasty client that dies in the end: what it still does, such as giving back, does not reach the store. */
export const dyingClient = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.flatMap(LockStore.LockStore, (store) => {
    let isDead = false
    const mortal = wrappedStore(store, ({ run }) => Effect.suspend(() => (isDead ? Effect.succeed(1) : run())))
    const dies = Effect.ensuring(
      self,
      Effect.sync(() => {
        isDead = true
      })
    )
    return Effect.provide(dies, Layer.fresh(Layer.provide(hastyClients, Layer.succeed(LockStore.LockStore, mortal))))
  })

export const storeAt = (url: string) => Layer.provide(LockStore.layerRedis, IoRedis.layer({ url }))

/** Whether time is virtual, so that it is known to the millisecond how long something takes. */
const IsVirtual = Context.Reference<boolean>("test/redisson/IsVirtual", { defaultValue: () => false })

/** What declares the tests of a store. */
export interface Tests<R> {
  readonly effect: (title: string, body: () => Effect.Effect<unknown, unknown, R | Scope.Scope>) => void
}

/** Runs the tests on memory, in virtual time, and on Redis. */
export const onBoth = <R>(
  title: string,
  layerOf: (store: Layer.Layer<LockStore.LockStore, unknown>) => Layer.Layer<R, unknown>,
  tests: (it: Tests<R>) => void
) => {
  describe(`${title} on memory`, () => {
    const memory = Layer.fresh(layerOf(LockStore.layerMemory))
    tests({
      effect: (title, body) =>
        it(title, () => {
          const program = body().pipe(Effect.provide(memory), Effect.scoped, Effect.provideService(IsVirtual, true))
          const exit = new VirtualTime(Date.now()).run(program)
          if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
        })
    })
  })
  it.layer(layerOf(storeAt(redisUrl)), { excludeTestServices: true })(`${title} on Redis`, tests)
}

/** {@link onBoth} with a client of the store. */
export const onBothStores = (title: string, tests: (it: Tests<RedisLock.RedisLock | LockStore.LockStore>) => void) =>
  onBoth(title, (store) => Layer.provideMerge(clients, store), tests)

/** A lock of any kind, and a kind. */
export type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered | LockTimeout>
export type Make = (name: string) => AnyLock

/** Another thread: a fiber with an owner of its own. */
export const otherThread = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.flatMap(Effect.forkChild(self), Fiber.join)

export const tryLock = (lock: AnyLock | string) => Effect.map(Effect.scoped(Lock.tryScoped(lock)), Option.isSome)

/** Holds a lock in a fiber of its own until let go, or until the test's scope closes. */
export const held = Effect.fnUntraced(function* (lock: AnyLock | string, options?: Lock.AcquireOptions) {
  const { acquired, end } = yield* holdUntilTold((stay: (holding: Holding) => Effect.Effect<void>) =>
    Effect.scoped(Effect.flatMap(Lock.scoped(lock, options), stay))
  )
  return { holding: acquired, letGo: end }
})

/** Acquires, as a thread that never releases and is gone. */
export const abandoned = (lock: AnyLock, options?: Lock.AcquireOptions) =>
  otherThread(Effect.flatMap(Scope.make(), (scope) => Scope.provide(Lock.scoped(lock, options), scope)))

export const millisOf = (duration: Option.Option<Duration.Duration>) => Duration.toMillis(Option.getOrThrow(duration))

/** How long something takes; on a busy machine only virtual time says that it took no longer. */
export const elapsed = Effect.fnUntraced(function* <A, E, R>(self: Effect.Effect<A, E, R>) {
  const isVirtual = yield* IsVirtual
  const [duration, result] = yield* Effect.timed(self)
  const millis = Duration.toMillis(duration)
  const isBelow = (limit: number) => {
    if (isVirtual) assert.isBelow(millis, limit)
  }
  return { millis, result, isBelow }
})

const freshLock = (make: Make) => Effect.sync(() => make(freshName("redisson")))

export const lockUnlockTwice = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    for (let i = 0; i < 2; i++) {
      assert.isTrue(yield* Lock.withLock(Lock.isLocked(lock), lock))
      assert.isFalse(yield* Lock.isLocked(lock))
    }
  })

export const isLocked = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const seen = Effect.all([Lock.isLocked(lock), otherThread(Lock.isLocked(lock))])
    assert.deepStrictEqual(yield* seen, [false, false])
    assert.deepStrictEqual(yield* Lock.withLock(seen, lock), [true, true])
    assert.deepStrictEqual(yield* seen, [false, false])
  })

export const isHeldByCurrentThread = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
    assert.isTrue(yield* Lock.withLock(Lock.isHeldByCurrentOwner(lock), lock))
    const holder = yield* held(lock)
    assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
    yield* holder.letGo
    assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
  })

export const holdCounts = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const counts = [yield* Lock.holdCount(lock)]
    yield* Effect.gen(function* () {
      counts.push(yield* Lock.holdCount(lock))
      counts.push(yield* Lock.withLock(Lock.holdCount(lock), lock))
      counts.push(yield* Lock.holdCount(lock))
    }).pipe(Lock.withLock(lock))
    counts.push(yield* Lock.holdCount(lock))
    assert.deepStrictEqual(counts, [0, 1, 2, 1, 0])
  })

/** `rival`: what another thread asks for, where that is not the same lock. */
export const reentrant =
  (make: Make, rival: Make = make) =>
  () =>
    Effect.gen(function* () {
      const lock = yield* freshLock(make)
      const foreign = Effect.suspend(() => otherThread(tryLock(rival(lock.name))))
      yield* Effect.gen(function* () {
        const outer = Option.getOrThrow(yield* Lock.tryScoped(lock))
        const inner = Option.getOrThrow(yield* Lock.tryScoped(lock))
        assert.isFalse(yield* foreign)
        yield* inner.release
        assert.isFalse(yield* foreign)
        yield* outer.release
        assert.isTrue(yield* foreign)
      }).pipe(Effect.scoped)
    })

/** A release by a stranger cannot be asked for: there is no holding to release. */
export const onlyHolderReleases = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const holder = yield* held(lock)
    assert.strictEqual((yield* Effect.flip(Lock.currentHolding(lock)))._tag, "NotLockOwner")
    assert.isTrue(yield* holder.holding.isHeld)
    yield* holder.holding.release
    assert.isFalse(yield* Lock.isLocked(lock))
    yield* holder.letGo
  })

export const forceRelease = (make: Make) => () =>
  Effect.gen(function* () {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const lock = yield* freshLock(make)
    const holder = yield* held(lock)
    assert.isTrue(yield* otherClient(Lock.forceRelease(lock)))
    assert.isFalse(yield* Lock.isLocked(lock))
    assert.isFalse(yield* Lock.forceRelease(lock))
    yield* holder.letGo
  })

/** A lease of 600 ms for 2 s in Redisson: the waiter is in when it is over, and the late release of the old holder fails. */
export const leaseExpires = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const {
      isBelow,
      millis,
      result: holder
    } = yield* elapsed(Effect.tap(held(lock, { leaseTime: 600 }), () => otherClient(Lock.withLock(Effect.void, lock))))
    assert.isAtLeast(millis, 599)
    // a lost message would cost a second, a lost lease for ever
    isBelow(1500)
    assert.strictEqual((yield* Effect.flip(holder.holding.release)).reason, "Expired")
    yield* holder.letGo
  })

/** 500 ms for 3 s in Redisson. */
export const waitEnds = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const holder = yield* held(lock)
    const { isBelow, millis, result } = yield* elapsed(Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 500 })))
    assert.strictEqual(result._tag, "LockTimeout")
    assert.isAtLeast(millis, 499)
    isBelow(2000)
    yield* holder.letGo
  })

/** Behind Redisson's uninterruptible `lock()`. */
export const interruptedWaiterNeverAcquires = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const holder = yield* held(lock)
    let entered = false
    const waiting = yield* Lock.withLock(
      Effect.sync(() => (entered = true)),
      lock
    ).pipe(Effect.forkChild({ startImmediately: true }))
    const patient = yield* Effect.uninterruptible(Lock.withLock(Effect.succeed("in"), lock)).pipe(
      Effect.forkChild({ startImmediately: true })
    )
    yield* Fiber.interrupt(waiting)
    const interruption = yield* Effect.forkChild(Fiber.interrupt(patient), { startImmediately: true })
    // time to come in, which it must not
    yield* Effect.sleep("50 millis")
    assert.isUndefined(patient.pollUnsafe())
    assert.isTrue(yield* holder.holding.isHeld)
    yield* holder.letGo
    yield* Fiber.join(interruption)
    assert.isFalse(entered)
    assert.isFalse(yield* Lock.isLocked(lock))
  })

/** The client is gone, and nobody closes the scope of its holding. A watchdog of 4 s for one of 30 s (1 s) in Redisson. */
export const deadClient = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const { isBelow, millis } = yield* elapsed(
      Effect.andThen(dyingClient(abandoned(lock)), Lock.withLock(Effect.void, lock))
    )
    assert.isAtLeast(millis, watchdogMillis - 1)
    isBelow(watchdogMillis + 1000)
  })

/** Waits until the watchdog has renewed a lock so many times more: its lease, which only shrinks otherwise, has grown. */
export const renewed = (lock: AnyLock, times: number) => {
  let seen = 0
  let last = Number.POSITIVE_INFINITY
  return until(
    `the lease is renewed ${times} times`,
    Effect.map(Lock.remainingTime(lock), (left) => {
      // a lock that is free now has not been renewed
      const millis = millisOf(left)
      if (millis > last) seen++
      last = millis
      return seen >= times
    })
  )
}

/** Counts what is never to happen at the same time. */
const exclusive = () => {
  const seen = { done: 0, together: 0, most: 0 }
  const section = Effect.gen(function* () {
    seen.most = Math.max(seen.most, ++seen.together)
    yield* Effect.yieldNow
    seen.together--
    seen.done++
  })
  return { seen, section }
}

export const fifteenTasks = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const { section, seen } = exclusive()
    yield* otherClient(
      Effect.forEach(Array.from({ length: 15 }), () => Lock.withLock(section, lock), { concurrency: "unbounded" })
    )
    assert.deepStrictEqual(seen, { done: 15, together: 0, most: 1 })
  })

export const sixteenClients = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const { section, seen } = exclusive()
    const client = Effect.forEach(Array.from({ length: 100 }), () => Lock.withLock(section, lock), { discard: true })
    yield* Effect.forEach(Array.from({ length: 16 }), () => otherClient(client), { concurrency: "unbounded" })
    assert.deepStrictEqual(seen, { done: 1600, together: 0, most: 1 })
  })

export const hundredClients = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = yield* freshLock(make)
    const { section, seen } = exclusive()
    const once = otherClient(Lock.withLock(section, lock))
    yield* Effect.forEach(Array.from({ length: 100 }), () => once, { concurrency: "unbounded" })
    assert.deepStrictEqual(seen, { done: 100, together: 0, most: 1 })
  })
