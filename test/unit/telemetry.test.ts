import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, References, Result, Scope } from "effect"
import { Lock, LockStore, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { metricValues, withOwnMetrics } from "../kit/metrics.ts"
import { recordSpans } from "../kit/spans.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"

const clients = RedisLock.layerFromStore()
const live = Layer.provideMerge(clients, LockStore.layerMemory)
const elsewhere = asAnotherClient(clients)

it.effect("Telemetry counts acquired, timed out and lost locks, how long acquiring took, and the locks held now", () =>
  Effect.gen(function* () {
    yield* Effect.gen(function* () {
      assert.deepInclude(yield* metricValues, { "redis_lock.held lock.kind=reentrant": 1 })
      const late = yield* Effect.forkChild(elsewhere(Effect.flip(Lock.withLock(Effect.void, "a", { waitTime: 10 }))))
      yield* TestClock.adjust(10)
      yield* Fiber.join(late)
    }).pipe(Lock.withLock("a"), Lock.withLock("a"))
    const lost = yield* Effect.forkChild(Effect.flip(Lock.withLock(Effect.never, "b", { leaseTime: 100 })))
    yield* TestClock.adjust(100)
    yield* Fiber.join(lost)
    assert.deepStrictEqual(yield* metricValues, {
      "redis_lock.acquisitions lock.kind=reentrant": 2,
      "redis_lock.wait.duration lock.kind=reentrant": 2,
      "redis_lock.hold.duration lock.kind=reentrant": 2,
      "redis_lock.timeouts lock.kind=reentrant": 1,
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=Expired": 1,
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=HeldTooLong": 0,
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=NotOwner": 0,
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=RenewalFailed": 0,
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=ClientClosed": 0,
      "redis_lock.renewal.failures lock.kind=reentrant": 0,
      "redis_lock.handovers lock.kind=reentrant": 0,
      "redis_lock.polls lock.kind=reentrant": 0,
      "redis_lock.held lock.kind=reentrant": 0,
      "redis_lock.waiting lock.kind=reentrant": 0
    })
  }).pipe(Effect.provide(live), withOwnMetrics)
)

it.effect("A loss that a renewal and the release find at the same time is counted once", () =>
  Effect.gen(function* () {
    const server = yield* testStore()
    const service = yield* clientOf(server)
    const scope = yield* Scope.make()
    const holding = yield* as(service)(Scope.provide(Lock.scoped("a"), scope))
    yield* server.delete("a")
    server.delay = (operation) => (operation === "lock/renew" ? 10 : 20)
    const renewal = yield* Effect.forkChild(Effect.flip(holding.renew()), { startImmediately: true })
    const release = yield* Effect.forkChild(Effect.flip(holding.release), { startImmediately: true })
    yield* TestClock.adjust("1 second")
    for (const fiber of [renewal, release]) {
      const lost = yield* Fiber.join(fiber)
      assert.isTrue(lost._tag === "LockLost" && lost.reason === "NotOwner")
    }
    yield* Scope.close(scope, Exit.void)
    assert.deepInclude(yield* metricValues, {
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=HeldTooLong": 0,
      "redis_lock.losses lock.kind=reentrant lock.loss.reason=NotOwner": 1,
      "redis_lock.hold.duration lock.kind=reentrant": 1,
      "redis_lock.held lock.kind=reentrant": 0
    })
  }).pipe(Effect.scoped, withOwnMetrics)
)

it.effect("A caller that traces gets spans, and others get none", () =>
  Effect.gen(function* () {
    const { spans, tracer } = yield* recordSpans
    yield* Lock.withLock(Effect.void, "a").pipe(Effect.withTracer(tracer))
    assert.strictEqual(spans.length, 0)
    yield* Lock.withLock(Effect.withSpan(Effect.void, "body"), "a").pipe(
      Effect.withSpan("request"),
      Effect.withTracer(tracer)
    )
    assert.deepStrictEqual(
      spans.map((span) => [span.name, span.status._tag]),
      [
        ["request", "Ended"],
        ["Lock.acquire", "Ended"],
        ["Lock.hold", "Ended"],
        ["body", "Ended"]
      ]
    )
    const [request, acquire, hold, body] = spans
    assert.deepStrictEqual(Object.fromEntries(acquire!.attributes), { "lock.name": "a", "lock.kind": "reentrant" })
    const parents = [acquire, hold, body].map((span) => Result.getOrUndefined(Result.fromOption(span!.parent, () => 0)))
    assert.deepStrictEqual(parents, [request, request, hold])
  }).pipe(Effect.provide(live))
)

it.effect("A scoped hold has a span until it ends", () =>
  Effect.gen(function* () {
    const { spans, tracer } = yield* recordSpans
    yield* Effect.gen(function* () {
      yield* Lock.scoped("a")
      assert.deepStrictEqual(
        spans.map((span) => [span.name, span.status._tag]),
        [
          ["request", "Started"],
          ["Lock.acquire", "Ended"],
          ["Lock.hold", "Started"]
        ]
      )
    }).pipe(Effect.scoped, Effect.withSpan("request"), Effect.withTracer(tracer))
    assert.isTrue(spans.every((span) => span.status._tag === "Ended"))
  }).pipe(Effect.provide(live))
)

it.effect("Log lines of a section are annotated with the lock's name", () =>
  Effect.gen(function* () {
    const lines: Array<unknown> = []
    const logger = Logger.make((options) => {
      lines.push([options.message, options.fiber.getRef(References.CurrentLogAnnotations)])
    })
    yield* Effect.gen(function* () {
      yield* Effect.log("inside").pipe(Lock.withLock("a"))
      yield* Effect.log("outside")
    }).pipe(Effect.annotateLogs({ request: 1 }), Effect.provide(Logger.layer([logger])))
    assert.deepStrictEqual(lines, [
      [["inside"], { request: 1, lock: "a" }],
      [["outside"], { request: 1 }]
    ])
  }).pipe(Effect.provide(live))
)
