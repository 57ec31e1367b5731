/**
 * The types of semaphores and latches: error channels and requirements. Checked by `tsc -b test`, which `pnpm test` runs
 * first.
 */
import { expectTypeOf } from "@effect/vitest"
import { type Duration, Effect, type Option, type Scope } from "effect"
import {
  CountDownLatch,
  type InvalidLockName,
  type InvalidLockOptions,
  type LatchTimeout,
  type LockLost,
  type LockStoreError,
  type LockTimeout,
  PermitId,
  PermitSemaphore,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"
import { types } from "../kit/types.ts"

type Service = RedisLock.RedisLock
/** How asking can fail. */
type AskError = LockStoreError | InvalidLockName | InvalidLockOptions
declare const body: Effect.Effect<number, "mine", "needs">
declare const service: Service["Service"]

types("a semaphore requires the service, until one is bound", () => {
  expectTypeOf(Semaphore.make("a", { permits: 1 })).toEqualTypeOf<Semaphore.Semaphore<Service>>()
  const bound = Semaphore.make("a").pipe(Semaphore.provide(service))
  expectTypeOf(bound).toEqualTypeOf<Semaphore.Semaphore<never>>()
  expectTypeOf(Semaphore.tryAcquire(bound)).toEqualTypeOf<Effect.Effect<boolean, AskError>>()
  // @ts-expect-error a permit semaphore is none
  void Semaphore.acquire(PermitSemaphore.make("a"))
})

types("sections of a semaphore add to a body what can go wrong", () => {
  type Section<E = never> = Effect.Effect<number, "mine" | AskError | LockLost | E, "needs" | Service>
  expectTypeOf(body.pipe(Semaphore.withPermits("a", 2))).toEqualTypeOf<Section>()
  expectTypeOf(body.pipe(PermitSemaphore.withPermits("a", 2))).toEqualTypeOf<Section>()
  expectTypeOf(body.pipe(PermitSemaphore.withPermit("a", { leaseTime: 1 }))).toEqualTypeOf<Section>()
  // only what waits for a limited time can time out
  expectTypeOf(Semaphore.withPermits(body, "a", 2, { waitTime: 1 })).toEqualTypeOf<Section<LockTimeout>>()
  expectTypeOf(body.pipe(Semaphore.withPermits("a", 2, { waitTime: 1 }))).toEqualTypeOf<Section<LockTimeout>>()
  expectTypeOf(PermitSemaphore.withPermits(body, "a", 2, { waitTime: 1 })).toEqualTypeOf<Section<LockTimeout>>()
  expectTypeOf(body.pipe(PermitSemaphore.withPermit("a", { waitTime: 1 }))).toEqualTypeOf<Section<LockTimeout>>()
  type IfAvailable = Effect.Effect<Option.Option<number>, "mine" | AskError | LockLost, "needs" | Service>
  expectTypeOf(body.pipe(Semaphore.withPermitsIfAvailable("a", 2))).toEqualTypeOf<IfAvailable>()
  expectTypeOf(body.pipe(PermitSemaphore.withPermitIfAvailable("a"))).toEqualTypeOf<IfAvailable>()
})

types("anonymous permits are acquired for a scope, or for good, data-first and data-last", () => {
  const semaphore = Semaphore.make("a")
  type Acquired<E, R = never> = Effect.Effect<void, AskError | E, Service | R>
  expectTypeOf(Semaphore.scoped("a", 1)).toEqualTypeOf<Acquired<never, Scope.Scope>>()
  expectTypeOf(semaphore.pipe(Semaphore.scoped(1))).toEqualTypeOf<Acquired<never, Scope.Scope>>()
  expectTypeOf(Semaphore.scoped("a", 1, { waitTime: 1 })).toEqualTypeOf<Acquired<LockTimeout, Scope.Scope>>()
  expectTypeOf(semaphore.pipe(Semaphore.scoped(1, { waitTime: 1 }))).toEqualTypeOf<Acquired<LockTimeout, Scope.Scope>>()
  expectTypeOf(Semaphore.acquire("a")).toEqualTypeOf<Acquired<never>>()
  expectTypeOf(Semaphore.acquire("a", 2, { waitTime: 1 })).toEqualTypeOf<Acquired<LockTimeout>>()
  expectTypeOf(semaphore.pipe(Semaphore.acquire(2))).toEqualTypeOf<Acquired<never>>()
  expectTypeOf(semaphore.pipe(Semaphore.acquire(2, { waitTime: 1 }))).toEqualTypeOf<Acquired<LockTimeout>>()
})

types("commands about a semaphore are data-first and data-last", () => {
  type Told<A> = Effect.Effect<A, AskError, Service>
  const anonymous = Semaphore.make("a")
  expectTypeOf(Semaphore.tryAcquire("a")).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(anonymous.pipe(Semaphore.tryAcquire)).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(anonymous.pipe(Semaphore.tryAcquire(2))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(Semaphore.release("a", 2)).toEqualTypeOf<Told<void>>()
  expectTypeOf(anonymous.pipe(Semaphore.release)).toEqualTypeOf<Told<void>>()
  expectTypeOf(anonymous.pipe(Semaphore.release(2))).toEqualTypeOf<Told<void>>()
  expectTypeOf(Semaphore.releaseIfExists("a", 2)).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(anonymous.pipe(Semaphore.releaseIfExists(2))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(Semaphore.trySetPermits("a", 2, { timeToLive: 1 })).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(anonymous.pipe(Semaphore.trySetPermits(2))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(anonymous.pipe(Semaphore.trySetPermits(2, { timeToLive: 1 }))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(Semaphore.addPermits("a", 2)).toEqualTypeOf<Told<void>>()
  expectTypeOf(anonymous.pipe(Semaphore.addPermits(2))).toEqualTypeOf<Told<void>>()
  const leased = PermitSemaphore.make("a")
  expectTypeOf(PermitSemaphore.trySetPermits("a", 2)).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(leased.pipe(PermitSemaphore.trySetPermits(2))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(PermitSemaphore.setPermits("a", 2)).toEqualTypeOf<Told<void>>()
  expectTypeOf(leased.pipe(PermitSemaphore.setPermits(2))).toEqualTypeOf<Told<void>>()
  expectTypeOf(PermitSemaphore.addPermits("a", 2)).toEqualTypeOf<Told<void>>()
  expectTypeOf(leased.pipe(PermitSemaphore.addPermits(2))).toEqualTypeOf<Told<void>>()
  expectTypeOf(leased.pipe(PermitId.tryRelease(["id"]))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(leased.pipe(PermitId.updateLeaseTime("id", 1))).toEqualTypeOf<Told<boolean>>()
  expectTypeOf(leased.pipe(PermitId.leaseTime("id"))).toEqualTypeOf<Told<Option.Option<Duration.Duration>>>()
  type Released = Effect.Effect<void, AskError | LockLost, Service>
  expectTypeOf(PermitId.release("a", "id")).toEqualTypeOf<Released>()
  expectTypeOf(leased.pipe(PermitId.release("id"))).toEqualTypeOf<Released>()
})

types("the name of a semaphore or a latch requires the service, whatever is expected of the result", () => {
  // @ts-expect-error the layer is missing
  void Effect.runPromise(Semaphore.withPermits(Effect.void, "a", 1))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(Semaphore.availablePermits("a"))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(PermitSemaphore.withPermit(Effect.void, "a"))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(PermitSemaphore.setPermits("a", 2))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(CountDownLatch.await("a"))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(CountDownLatch.countDown("a"))
})

types("a leased permit is held for a scope, data-first and data-last", () => {
  const semaphore = PermitSemaphore.make("a")
  type Scoped<E = never> = Effect.Effect<PermitSemaphore.Permit, AskError | E, Service | Scope.Scope>
  expectTypeOf(PermitSemaphore.scoped("a", { permits: 2 })).toEqualTypeOf<Scoped>()
  expectTypeOf(PermitSemaphore.scoped("a", { waitTime: 1 })).toEqualTypeOf<Scoped<LockTimeout>>()
  expectTypeOf(semaphore.pipe(PermitSemaphore.scoped)).toEqualTypeOf<Scoped>()
  expectTypeOf(semaphore.pipe(PermitSemaphore.scoped({ permits: 2 }))).toEqualTypeOf<Scoped>()
  expectTypeOf(semaphore.pipe(PermitSemaphore.scoped({ waitTime: 1 }))).toEqualTypeOf<Scoped<LockTimeout>>()
  type TryScoped = Effect.Effect<Option.Option<PermitSemaphore.Permit>, AskError, Service | Scope.Scope>
  expectTypeOf(PermitSemaphore.tryScoped("a")).toEqualTypeOf<TryScoped>()
  expectTypeOf(semaphore.pipe(PermitSemaphore.tryScoped)).toEqualTypeOf<TryScoped>()
  expectTypeOf(semaphore.pipe(PermitSemaphore.tryScoped({ permits: 2 }))).toEqualTypeOf<TryScoped>()
  expectTypeOf(PermitId.leaseTime("a", "id")).toEqualTypeOf<
    Effect.Effect<Option.Option<Duration.Duration>, AskError, Service>
  >()
  const bound = PermitSemaphore.provide(PermitSemaphore.make("a"), service)
  expectTypeOf(PermitId.tryRelease(bound, [])).toEqualTypeOf<Effect.Effect<boolean, AskError>>()
})

types("permits do not stay after their release, so minHold does not compile", () => {
  PermitSemaphore.scoped("a", { permits: 2, acknowledge: { replicas: 1 } })
  // @ts-expect-error not for a scope
  PermitSemaphore.scoped("a", { minHold: 1 })
  // @ts-expect-error not in the other form either
  PermitSemaphore.scoped({ permits: 2, minHold: 1 })
  // @ts-expect-error nor without waiting
  PermitSemaphore.tryScoped("a", { minHold: 1 })
  // @ts-expect-error nor for a section
  PermitSemaphore.withPermits(body, "a", 2, { minHold: 1 })
  // @ts-expect-error nor for one permit
  PermitSemaphore.withPermit("a", { minHold: 1 })
})

types("waiting for a latch can time out where a waitTime limits it, data-first and data-last", () => {
  const latch = CountDownLatch.make("a")
  type Await<E = never> = Effect.Effect<void, AskError | E, Service>
  expectTypeOf(CountDownLatch.await("a")).toEqualTypeOf<Await>()
  expectTypeOf(latch.pipe(CountDownLatch.await)).toEqualTypeOf<Await>()
  expectTypeOf(CountDownLatch.await("a", { waitTime: 1 })).toEqualTypeOf<Await<LatchTimeout>>()
  expectTypeOf(latch.pipe(CountDownLatch.await({ waitTime: 1 }))).toEqualTypeOf<Await<LatchTimeout>>()
  expectTypeOf(CountDownLatch.trySetCount("a", 2)).toEqualTypeOf<Effect.Effect<boolean, AskError, Service>>()
  expectTypeOf(latch.pipe(CountDownLatch.trySetCount(2))).toEqualTypeOf<Effect.Effect<boolean, AskError, Service>>()
  const bound = CountDownLatch.make("a").pipe(CountDownLatch.provide(service))
  expectTypeOf(CountDownLatch.countDown(bound)).toEqualTypeOf<Effect.Effect<number, AskError>>()
})
