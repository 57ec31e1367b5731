import { assert } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Logger, References, Result, Scope } from "effect"
import {
  LeaderElection,
  Lock,
  LockStore,
  MultiLock,
  PermitSemaphore,
  RedisLock,
  RedLock,
  Semaphore
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { attributesOf, endOf, recordSpans } from "../kit/spans.ts"
import { as, clientOf, storeWith, testStores } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { testsThrough } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const clients = RedisLock.layerFromStore({ label: "web 3" })
const test = testsThrough<RedisLock.RedisLock>(Effect.provide(Layer.provideMerge(clients, LockStore.layerMemory)))

test("A caller that traces gets spans, and others get none", function* () {
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
})

test("A scoped hold has a span until it ends", function* () {
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
})

test("A caller that traces gets spans of acquiring and of holding permits, as of a lock", function* () {
  const { spans, tracer } = yield* recordSpans
  const counted = Semaphore.make("counted", { permits: 5 })
  const leased = PermitSemaphore.make("leased", { permits: 5 })
  yield* Effect.gen(function* () {
    yield* PermitSemaphore.tryScoped(leased)
    yield* Semaphore.scoped(counted, 1)
    yield* PermitSemaphore.withPermit(Effect.void, leased)
    yield* Semaphore.withPermitsIfAvailable(Effect.void, counted, 1)
    yield* Semaphore.acquire(counted)
  }).pipe(Effect.scoped, Effect.withSpan("request"), Effect.withTracer(tracer))
  assert.deepStrictEqual(
    spans.map(({ name }) => name),
    [
      "request",
      ...["PermitSemaphore.acquire", "PermitSemaphore.hold", "Semaphore.acquire", "Semaphore.hold"],
      ...["PermitSemaphore.acquire", "PermitSemaphore.hold", "Semaphore.acquire", "Semaphore.hold"],
      "Semaphore.acquire"
    ]
  )
})

test("A LockTimeout is no error of the span of its acquisition, and neither is a lock that is not available", function* () {
  const { spans, tracer } = yield* recordSpans
  const trace = <A, E, R>(self: Effect.Effect<A, E, R>) =>
    self.pipe(Effect.withSpan("request"), Effect.withTracer(tracer))
  const [, one, other] = yield* storeWith({}, {})
  const semaphore = Semaphore.make("permits", { permits: 1 })
  yield* as(other)(Lock.scoped("a"))
  const late = yield* trace(Effect.flip(Lock.withLock(Effect.void, "a", { waitTime: 10 }))).pipe(
    as(one),
    Effect.forkChild
  )
  yield* TestClock.adjust(10)
  assert.strictEqual((yield* Fiber.join(late))._tag, "LockTimeout")
  yield* trace(Lock.withLockIfAvailable(Effect.void, "a")).pipe(as(one))
  const many = yield* trace(Effect.flip(Semaphore.withPermits(Effect.void, semaphore, 2, { waitTime: 10 }))).pipe(
    as(one),
    Effect.forkChild
  )
  yield* TestClock.adjust(10)
  assert.strictEqual((yield* Fiber.join(many))._tag, "LockTimeout")
  assert.deepStrictEqual(
    spans.filter(({ name }) => name !== "request").map((span) => [span.name, endOf(span), attributesOf(span)]),
    [
      ["Lock.acquire", "Success", { "lock.name": "a", "lock.kind": "reentrant", "lock.outcome": "timeout" }],
      ["Lock.acquire", "Success", { "lock.name": "a", "lock.kind": "reentrant", "lock.outcome": "unavailable" }],
      ["Semaphore.acquire", "Success", { "lock.name": "permits", "lock.kind": "semaphore", "lock.outcome": "timeout" }]
    ]
  )
})

test("A store that fails, and an interruption, end the span of an acquisition as what they are", function* () {
  const { spans, tracer } = yield* recordSpans
  const [server, service] = yield* storeWith({})
  const traced = Lock.withLock(Effect.void, "a").pipe(
    Effect.withSpan("request"),
    Effect.withTracer(tracer),
    as(service)
  )
  server.refuses = () => true
  server.reason = "NoPermission"
  assert.strictEqual((yield* Effect.flip(traced))._tag, "LockStoreError")
  server.refuses = () => false
  server.delay = () => 1000
  const fiber = yield* background(traced)
  const interrupted = yield* Effect.forkChild(Fiber.interrupt(fiber))
  yield* TestClock.adjust("1 minute")
  yield* Fiber.join(interrupted)
  const [first, second] = spans.filter(({ name }) => name === "Lock.acquire")
  assert.strictEqual(endOf(first), "Failure")
  assert.isTrue(
    second!.status._tag === "Ended" &&
      Exit.isFailure(second!.status.exit) &&
      Cause.hasInterruptsOnly(second!.status.exit.cause)
  )
})

test("The span of a section says who holds the lock, by which token, and in which process", function* () {
  const { spans, tracer } = yield* recordSpans
  const leased = PermitSemaphore.make("leased", { permits: 3 })
  const pair = MultiLock.make([Lock.make("b"), Lock.make("c")])
  const { multi, owner, token } = yield* Effect.gen(function* () {
    const holding = yield* Lock.scoped("a")
    const { owner, token } = holding
    yield* Effect.void.pipe(Lock.withLock("a"))
    const multi = yield* Lock.scoped(pair)
    yield* PermitSemaphore.withPermits(Effect.void, leased, 2)
    yield* Semaphore.withPermits(Effect.void, Semaphore.make("counted", { permits: 2 }), 2)
    yield* LeaderElection.campaign(LeaderElection.make("chief"))
    return { multi: multi.owner, owner, token }
  }).pipe(Effect.scoped, Effect.withSpan("request"), Effect.withTracer(tracer))
  const holds = spans.filter(({ name }) => name.endsWith(".hold") || name.endsWith(".lead")).map(attributesOf)
  const expected = { "lock.name": "a", "lock.kind": "reentrant", "lock.owner": owner, "lock.token": String(token) }
  assert.deepStrictEqual(holds[0], { ...expected, "lock.client.label": "web 3" })
  assert.deepStrictEqual(holds[1], holds[0])
  assert.deepStrictEqual(holds[2], {
    "lock.name": "b, c",
    "lock.kind": "multi",
    "lock.owner": multi,
    "lock.client.label": "web 3"
  })
  for (const permits of [holds[3]!, holds[4]!]) {
    assert.deepInclude(permits, { "lock.permits": 2, "lock.client.label": "web 3" })
    assert.isString(permits["lock.owner"])
  }
  assert.deepInclude(holds[5], { "lock.name": "chief", "lock.kind": "election" })
  assert.isString(holds[5]!["lock.token"])
})

test("The span of a section covers its release, and says how the lock was lost", function* () {
  expectWarning(/^The lock's scope has closed, but its release went wrong\./)
  const { spans, tracer } = yield* recordSpans
  const [server, service] = yield* storeWith({})
  const trace = <A, E, R>(self: Effect.Effect<A, E, R>) =>
    self.pipe(Effect.withSpan("request"), Effect.withTracer(tracer), as(service))
  server.delay = (operation) => (operation === "lock/release" ? 50 : 0)
  const released = yield* Effect.forkChild(trace(Lock.withLock(server.delete("a"), "a")))
  yield* TestClock.adjust(40)
  const span = () => spans.findLast(({ name }) => name === "Lock.hold")
  assert.strictEqual(span()!.status._tag, "Started")
  yield* TestClock.adjust(10)
  assert.isTrue(Exit.isFailure(yield* Fiber.await(released)))
  assert.deepInclude(attributesOf(span()), { "lock.loss.reason": "NotOwner" })
  assert.strictEqual(endOf(span()), "Failure")

  const expired = yield* Effect.forkChild(trace(Lock.withLock(Effect.never, "b", { leaseTime: 100 })))
  yield* TestClock.adjust(200)
  assert.isTrue(Exit.isFailure(yield* Fiber.await(expired)))
  assert.deepInclude(attributesOf(span()), { "lock.name": "b", "lock.loss.reason": "Expired" })

  const scope = yield* Scope.make()
  yield* trace(Scope.provide(Lock.scoped("c"), scope))
  yield* server.delete("c")
  const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void))
  yield* TestClock.adjust(100)
  yield* Fiber.await(closed)
  assert.deepInclude(attributesOf(span()), { "lock.name": "c", "lock.loss.reason": "NotOwner" })

  const fine = yield* Effect.forkChild(trace(Lock.withLock(Effect.void, "d")))
  yield* TestClock.adjust(50)
  yield* Fiber.join(fine)
  assert.notProperty(attributesOf(span()), "lock.loss.reason")
})

test("The span of a lock on a quorum calls it red", function* () {
  const { spans, tracer } = yield* recordSpans
  const stores = yield* testStores(3)
  const services = yield* Effect.forEach(stores, (store) => clientOf(store))
  const red = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
  yield* Lock.withLock(Effect.void, red).pipe(Effect.withSpan("request"), Effect.withTracer(tracer))
  const kinds = spans.slice(1).map((span) => attributesOf(span)["lock.kind"])
  assert.deepStrictEqual(kinds, ["red", "red"])
})

test("Log lines of a section are annotated with the lock's name", function* () {
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
})
