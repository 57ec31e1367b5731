import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Tracer } from "effect"
import { PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { metricsAboveZero, withOwnMetrics } from "../kit/metrics.ts"

it.effect("Telemetry counts the acquired permits of semaphores, and those held now", () =>
  Effect.gen(function* () {
    const counted = Semaphore.make("counted", { permits: 5 })
    const leased = PermitSemaphore.make("leased", { permits: 5 })
    const inside = yield* metricsAboveZero.pipe(
      Semaphore.withPermits(counted, 2),
      PermitSemaphore.withPermits(leased, 2)
    )
    assert.strictEqual(inside["redis_lock.held lock.kind=semaphore"], 1)
    assert.strictEqual(inside["redis_lock.held lock.kind=permit_semaphore"], 1)
    // nobody can tell whether these are still held
    yield* Semaphore.acquire(counted, 4)
    const late = yield* Effect.forkChild(Effect.flip(Semaphore.acquire(counted, 2, { waitTime: 10 })))
    yield* TestClock.adjust(10)
    yield* Fiber.join(late)
    const lost = yield* Effect.forkChild(
      Effect.flip(PermitSemaphore.withPermit(Effect.never, leased, { leaseTime: 100 }))
    )
    yield* TestClock.adjust(100)
    yield* Fiber.join(lost)
    assert.deepStrictEqual(yield* metricsAboveZero, {
      "redis_lock.acquisitions lock.kind=semaphore": 1,
      "redis_lock.wait.duration lock.kind=semaphore": 1,
      "redis_lock.hold.duration lock.kind=semaphore": 1,
      "redis_lock.timeouts lock.kind=semaphore": 1,
      "redis_lock.acquisitions lock.kind=permit_semaphore": 2,
      "redis_lock.wait.duration lock.kind=permit_semaphore": 2,
      "redis_lock.hold.duration lock.kind=permit_semaphore": 2,
      "redis_lock.losses lock.kind=permit_semaphore lock.loss.reason=Expired": 1
    })
  }).pipe(Effect.provide(RedisLock.layerMemory), withOwnMetrics)
)

it.effect("A caller that traces gets spans of acquiring and of holding permits, as of a lock", () =>
  Effect.gen(function* () {
    const names: Array<string> = []
    const tracer = Tracer.make({
      span: (options) => {
        names.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    const counted = Semaphore.make("counted", { permits: 5 })
    const leased = PermitSemaphore.make("leased", { permits: 5 })
    yield* Effect.gen(function* () {
      yield* PermitSemaphore.tryScoped(leased)
      yield* Semaphore.scoped(counted, 1)
      yield* PermitSemaphore.withPermit(Effect.void, leased)
      yield* Semaphore.withPermitsIfAvailable(Effect.void, counted, 1)
      yield* Semaphore.acquire(counted)
    }).pipe(Effect.scoped, Effect.withSpan("request"), Effect.withTracer(tracer))
    assert.deepStrictEqual(names, [
      "request",
      ...["PermitSemaphore.acquire", "PermitSemaphore.hold", "Semaphore.acquire", "Semaphore.hold"],
      ...["PermitSemaphore.acquire", "PermitSemaphore.hold", "Semaphore.acquire", "Semaphore.hold"],
      "Semaphore.acquire"
    ])
  }).pipe(Effect.provide(RedisLock.layerMemory))
)
