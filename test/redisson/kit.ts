/**
 * What the tests of Redisson's behaviours share: stores, clients and threads.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { type Holding, Lock, type LockReentered, type LockTimeout, LockStore, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { until } from "../kit/eventually.ts"
import { holdUntilTold } from "../kit/sections.ts"
// loads the scripts of the memory store: virtual time waits for no import
import "../simulation/memory.ts"
import { VirtualTime } from "../simulation/virtualTime.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"

/** With leases of 30 seconds: on a busy machine a client may get nowhere for longer than a short lease lasts. */
export const clients = closingSubscriptions(100)(RedisLock.layerFromStore())
export const otherClient = asAnotherClient(clients)

/** The watchdog's lease of {@link hastyClient}. */
const watchdogMillis = 4000
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
interface Tests {
  readonly effect: (
    title: string,
    body: () => Effect.Effect<unknown, unknown, RedisLock.RedisLock | LockStore.LockStore | Scope.Scope>
  ) => void
}

/** Runs the tests with a client of a memory store, in virtual time. */
export const onMemory = (title: string, tests: (it: Tests) => void) =>
  describe(`${title} on memory`, () => {
    const memory = Layer.fresh(Layer.provideMerge(clients, LockStore.layerMemory))
    tests({
      effect: (title, body) =>
        it(title, () => {
          const program = body().pipe(Effect.provide(memory), Effect.scoped, Effect.provideService(IsVirtual, true))
          const exit = new VirtualTime(Date.now()).run(program)
          if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
        })
    })
  })

/** And with one of Redis. */
export const onBothStores = (title: string, tests: (it: Tests) => void) => {
  onMemory(title, tests)
  it.layer(Layer.provideMerge(clients, storeAt(redisUrl)), { excludeTestServices: true })(`${title} on Redis`, tests)
}

/** A lock of any kind. */
export type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered | LockTimeout>

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
