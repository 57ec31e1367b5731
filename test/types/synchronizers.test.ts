/**
 * The types of semaphores and latches: error channels and requirements. Checked by `tsc -b test`, which `pnpm test` runs
 * first.
 */
import { expectTypeOf, it } from "@effect/vitest"
import type { Duration, Effect, Option, Scope } from "effect"
import {
  type AcquireError,
  CountDownLatch,
  type InvalidLockName,
  type InvalidLockOptions,
  type LatchTimeout,
  type LockLost,
  type LockStoreError,
  PermitSemaphore,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"

type Service = RedisLock.RedisLock
type Invalid = InvalidLockName | InvalidLockOptions
declare const body: Effect.Effect<number, "mine", "needs">
declare const service: Service["Service"]

/** Only the types matter: nothing of it is run. */
const types = (check: () => void): void => {
  expectTypeOf(check).toBeFunction()
}

it("a semaphore requires the service, until one is bound", () =>
  types(() => {
    expectTypeOf(Semaphore.make("a", { permits: 1 })).toEqualTypeOf<Semaphore.Semaphore<Service>>()
    const bound = Semaphore.make("a").pipe(Semaphore.provide(service))
    expectTypeOf(bound).toEqualTypeOf<Semaphore.Semaphore<never>>()
    expectTypeOf(Semaphore.tryAcquire(bound)).toEqualTypeOf<Effect.Effect<boolean, LockStoreError | Invalid>>()
    // @ts-expect-error a permit semaphore is none
    void Semaphore.acquire(PermitSemaphore.make("a"))
  }))

it("sections of a semaphore add to a body what can go wrong", () =>
  types(() => {
    type Section = Effect.Effect<number, "mine" | AcquireError | LockLost, "needs" | Service>
    expectTypeOf(body.pipe(Semaphore.withPermits("a", 2))).toEqualTypeOf<Section>()
    expectTypeOf(Semaphore.withPermits(body, "a", 2, { waitTime: 1 })).toEqualTypeOf<Section>()
    expectTypeOf(body.pipe(PermitSemaphore.withPermits("a", 2))).toEqualTypeOf<Section>()
    expectTypeOf(body.pipe(PermitSemaphore.withPermit("a", { leaseTime: 1 }))).toEqualTypeOf<Section>()
    type IfAvailable = Effect.Effect<
      Option.Option<number>,
      "mine" | LockStoreError | LockLost | Invalid,
      "needs" | Service
    >
    expectTypeOf(body.pipe(Semaphore.withPermitsIfAvailable("a", 2))).toEqualTypeOf<IfAvailable>()
    expectTypeOf(body.pipe(PermitSemaphore.withPermitIfAvailable("a"))).toEqualTypeOf<IfAvailable>()
    expectTypeOf(Semaphore.scoped("a", 1)).toEqualTypeOf<Effect.Effect<void, AcquireError, Service | Scope.Scope>>()
  }))

it("a permit is held for a scope", () =>
  types(() => {
    expectTypeOf(PermitSemaphore.scoped("a", { permits: 2 })).toEqualTypeOf<
      Effect.Effect<PermitSemaphore.Permit, AcquireError, Service | Scope.Scope>
    >()
    expectTypeOf(PermitSemaphore.tryScoped("a")).toEqualTypeOf<
      Effect.Effect<Option.Option<PermitSemaphore.Permit>, LockStoreError | Invalid, Service | Scope.Scope>
    >()
    expectTypeOf(PermitSemaphore.leaseTime("a", "id")).toEqualTypeOf<
      Effect.Effect<Option.Option<Duration.Duration>, LockStoreError | Invalid, Service>
    >()
    const bound = PermitSemaphore.provide(PermitSemaphore.make("a"), service)
    expectTypeOf(PermitSemaphore.tryRelease(bound, [])).toEqualTypeOf<
      Effect.Effect<boolean, LockStoreError | Invalid>
    >()
  }))

it("waiting for a latch can time out", () =>
  types(() => {
    expectTypeOf(CountDownLatch.await("a")).toEqualTypeOf<
      Effect.Effect<void, LatchTimeout | LockStoreError | Invalid, Service>
    >()
    const bound = CountDownLatch.make("a").pipe(CountDownLatch.provide(service))
    expectTypeOf(CountDownLatch.countDown(bound)).toEqualTypeOf<Effect.Effect<number, LockStoreError | Invalid>>()
  }))
