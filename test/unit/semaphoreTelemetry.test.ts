import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Metric, Tracer } from "effect"
import { PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"

const counts = Effect.map(Metric.snapshot, (metrics) =>
  Object.fromEntries(
    metrics.flatMap(({ attributes, id, state }) => {
      const count = "count" in state ? Number(state.count) : Number((state as { value: number }).value)
      return count === 0 ? [] : [[[id, ...Object.values(attributes ?? {})].join(" "), count]]
    })
  )
)

it.effect("Telemetry counts the acquired permits of semaphores, and those held now", () =>
  Effect.gen(function* () {
    const counted = Semaphore.make("counted", { permits: 5 })
    const leased = PermitSemaphore.make("leased", { permits: 5 })
    const inside = yield* counts.pipe(Semaphore.withPermits(counted, 2), PermitSemaphore.withPermits(leased, 2))
    assert.strictEqual(inside["redis_lock_held semaphore"], 1)
    assert.strictEqual(inside["redis_lock_held permit-semaphore"], 1)
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
    assert.deepStrictEqual(yield* counts, {
      "redis_lock_acquired semaphore": 1,
      "redis_lock_wait_millis semaphore": 1,
      "redis_lock_hold_millis semaphore": 1,
      "redis_lock_timed_out semaphore": 1,
      "redis_lock_acquired permit-semaphore": 2,
      "redis_lock_wait_millis permit-semaphore": 2,
      "redis_lock_hold_millis permit-semaphore": 2,
      "redis_lock_lost permit-semaphore Expired": 1
    })
  }).pipe(
    Effect.provide(RedisLock.layerMemory),
    // kept apart from the metrics of other tests
    (self) => Effect.suspend(() => Effect.provideService(self, Metric.MetricRegistry, new Map()))
  )
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
