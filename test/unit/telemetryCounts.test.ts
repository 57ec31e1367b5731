import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scheduler, Scope } from "effect"
import {
  CountDownLatch,
  FairLock,
  Lock,
  LockMetrics,
  LockStore,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  RedisLock,
  RedLock,
  Semaphore,
  SpinLock,
  type StoreReason
} from "effect-redis-lock"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import type { Hold } from "../../packages/core/dist/internal/hold/Hold.js"
import { fakeDriver } from "../kit/fakeDriver.ts"
import { asAnotherClient } from "../kit/anotherClient.ts"
import { metricsAboveZero, metricValues, withOwnMetrics } from "../kit/metrics.ts"
import { testsThrough } from "../kit/test.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { as, clientOf, quorumOf, storeWith, testStore, testStores } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { background } from "../kit/background.ts"

const clients = RedisLock.layerFromStore()
const live = Layer.provideMerge(clients, LockStore.layerMemory)
const elsewhere = asAnotherClient(clients)

const test = testsThrough<RedisLock.RedisLock | LockStore.LockStore>((self) =>
  withOwnMetrics(Effect.provide(self, live))
)

test("Telemetry counts acquired, timed out and lost locks, how long acquiring took, and the locks held now", function* () {
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
})

test("A loss that a renewal and the release find at the same time is counted once", function* () {
  const [server, service] = yield* storeWith({})
  const scope = yield* Scope.make()
  const holding = yield* as(service)(Scope.provide(Lock.scoped("a"), scope))
  yield* server.delete("a")
  server.delay = (operation) => (operation === "lock/renew" ? 10 : 20)
  const renewal = yield* background(Effect.flip(holding.renew()))
  const release = yield* background(Effect.flip(holding.release))
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
})

test("Telemetry counts the acquired permits of semaphores, and those held now", function* () {
  const counted = Semaphore.make("counted", { permits: 5 })
  const leased = PermitSemaphore.make("leased", { permits: 5 })
  const inside = yield* metricsAboveZero.pipe(Semaphore.withPermits(counted, 2), PermitSemaphore.withPermits(leased, 2))
  assert.strictEqual(inside["redis_lock.held lock.kind=semaphore"], 1)
  assert.strictEqual(inside["redis_lock.held lock.kind=permit_semaphore"], 1)
  // nobody can tell whether these are still held
  yield* Semaphore.acquire(counted, 4)
  assert.isTrue(yield* Semaphore.tryAcquire(counted))
  assert.isFalse(yield* Semaphore.tryAcquire(counted))
  const late = yield* Effect.forkChild(Effect.flip(Semaphore.acquire(counted, 2, { waitTime: 10 })))
  yield* TestClock.adjust(10)
  yield* Fiber.join(late)
  const lost = yield* Effect.forkChild(
    Effect.flip(PermitSemaphore.withPermit(Effect.never, leased, { leaseTime: 100 }))
  )
  yield* TestClock.adjust(100)
  yield* Fiber.join(lost)
  assert.deepStrictEqual(yield* metricsAboveZero, {
    "redis_lock.acquisitions lock.kind=semaphore": 3,
    "redis_lock.wait.duration lock.kind=semaphore": 3,
    "redis_lock.hold.duration lock.kind=semaphore": 1,
    "redis_lock.timeouts lock.kind=semaphore": 1,
    "redis_lock.acquisitions lock.kind=permit_semaphore": 2,
    "redis_lock.wait.duration lock.kind=permit_semaphore": 2,
    "redis_lock.hold.duration lock.kind=permit_semaphore": 2,
    "redis_lock.losses lock.kind=permit_semaphore lock.loss.reason=Expired": 1
  })
})

test("The sides of a read-write lock are counted apart, and a lock on a quorum as red, whichever kind its members are", function* () {
  const { readLock, writeLock } = ReadWriteLock.make("page")
  const stores = yield* testStores(3)
  const services = yield* Effect.forEach(stores, (store) => clientOf(store))
  const red = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
  const redRead = RedLock.make(services.map((service) => Lock.provide(readLock, service)))
  const quorum = yield* quorumOf(stores)
  const inside = yield* metricsAboveZero.pipe(
    Lock.withLock(red),
    Lock.withLock(redRead),
    Effect.provideService(RedisLock.RedisLock, services[0]!)
  )
  assert.strictEqual(inside["redis_lock.held lock.kind=red"], 1)
  assert.strictEqual(inside["redis_lock.held lock.kind=red_read"], 1)
  yield* Effect.void.pipe(Lock.withLock("b"), Lock.withLock(writeLock), as(quorum))
  yield* Effect.void.pipe(Lock.withLock(readLock), as(services[0]!))
  yield* Effect.void.pipe(Lock.withLock(writeLock), as(services[0]!))
  const counts = yield* metricsAboveZero
  assert.deepInclude(counts, {
    "redis_lock.acquisitions lock.kind=red": 2,
    "redis_lock.acquisitions lock.kind=red_read": 1,
    "redis_lock.acquisitions lock.kind=red_write": 1,
    "redis_lock.acquisitions lock.kind=read": 1,
    "redis_lock.acquisitions lock.kind=write": 1
  })
  assert.notProperty(counts, "redis_lock.acquisitions lock.kind=reentrant")
})

test("Of a MultiLock its members are counted, and its timeout once, as that of the member that was taken", function* () {
  const [, one, other] = yield* storeWith({}, {})
  const both = MultiLock.make([Lock.make("a"), FairLock.make("b")])
  const inside = yield* metricsAboveZero.pipe(Lock.withLock(both), as(one))
  assert.strictEqual(inside["redis_lock.held lock.kind=reentrant"], 1)
  assert.strictEqual(inside["redis_lock.held lock.kind=fair"], 1)
  yield* Effect.gen(function* () {
    yield* as(other)(Lock.scoped("b"))
    const late = yield* Effect.forkChild(
      as(one)(Effect.flip(Lock.withLock(Effect.void, both, { waitTime: "1 minute" })))
    )
    yield* TestClock.adjust("30 seconds")
    assert.strictEqual((yield* metricValues)["redis_lock.waiting lock.kind=fair"], 1)
    yield* TestClock.adjust("31 seconds")
    const error = yield* Fiber.join(late)
    assert.strictEqual(error._tag, "LockTimeout")
    assert.include(error.message, both.name)
  }).pipe(Effect.scoped)
  const counts = yield* metricsAboveZero
  assert.strictEqual(counts["redis_lock.timeouts lock.kind=fair"], 1)
  for (const none of ["timeouts lock.kind=reentrant", "waiting lock.kind=fair", "held lock.kind=reentrant"]) {
    assert.notProperty(counts, `redis_lock.${none}`)
  }
  assert.notInclude(Object.keys(counts).join(), "multi")
})

test("The loss of one member of a MultiLock is counted once, as a loss of that member", function* () {
  const [server, service] = yield* storeWith({})
  const both = MultiLock.make([Lock.make("a"), Lock.make("b")])
  const scope = yield* Scope.make()
  const holding = yield* as(service)(Scope.provide(Lock.scoped(both), scope))
  yield* server.delete("b")
  const lost = yield* Effect.flip(holding.release)
  assert.strictEqual(lost._tag, "LockLost")
  yield* Scope.close(scope, Exit.void)
  assert.deepInclude(yield* metricValues, {
    "redis_lock.losses lock.kind=reentrant lock.loss.reason=NotOwner": 1,
    "redis_lock.held lock.kind=reentrant": 0
  })
})

test("Acquisitions count as waiting until they are granted, time out or are interrupted", function* () {
  const semaphore = Semaphore.make("permits", { permits: 1 })
  const leased = PermitSemaphore.make("leased", { permits: 1 })
  const fair = FairLock.make("fair")
  const [, one, other] = yield* storeWith({}, {})
  const held = yield* Scope.make()
  yield* Effect.all([
    Lock.scoped("plain"),
    Lock.scoped(fair),
    Semaphore.scoped(semaphore, 1),
    PermitSemaphore.scoped(leased)
  ]).pipe(Scope.provide(held), as(other))
  const waiters: Array<Fiber.Fiber<unknown, unknown>> = []
  for (const waitTime of ["10 seconds", "1 hour", "1 hour"] as const) {
    waiters.push(
      yield* Effect.forkChild(as(one)(Lock.withLock(Effect.void, "plain", { waitTime }))),
      yield* Effect.forkChild(as(one)(Lock.withLock(Effect.void, fair, { waitTime }))),
      yield* Effect.forkChild(as(one)(Semaphore.withPermits(Effect.void, semaphore, 1, { waitTime }))),
      yield* Effect.forkChild(as(one)(PermitSemaphore.withPermit(Effect.void, leased, { waitTime })))
    )
  }
  const waiting = Effect.map(metricValues, (values) =>
    ["reentrant", "fair", "semaphore", "permit_semaphore"].map((kind) => values[`redis_lock.waiting lock.kind=${kind}`])
  )
  yield* TestClock.adjust("1 second")
  assert.deepStrictEqual(yield* waiting, [3, 3, 3, 3])
  yield* TestClock.adjust("10 seconds")
  assert.deepStrictEqual(yield* waiting, [2, 2, 2, 2])
  yield* Effect.forkChild(Effect.forEach(waiters.slice(4, 8), Fiber.interrupt))
  yield* TestClock.adjust("1 second")
  assert.deepStrictEqual(yield* waiting, [1, 1, 1, 1])
  yield* Scope.close(held, Exit.void)
  yield* TestClock.adjust("1 minute")
  for (const fiber of waiters.slice(8)) yield* Fiber.join(fiber)
  assert.deepStrictEqual(yield* waiting, [0, 0, 0, 0])
})

test("Each failed renewal is counted, whether the watchdog made it or the application", function* () {
  const [server, service] = yield* storeWith({})
  const failures = Effect.map(metricValues, (values) => values["redis_lock.renewal.failures lock.kind=reentrant"])
  yield* Effect.gen(function* () {
    const holding = yield* Lock.scoped("a")
    server.refuses = (operation) => operation === "lock/renew"
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* failures, 1)
    yield* Effect.flip(holding.renew())
    assert.strictEqual(yield* failures, 2)
    server.refuses = () => false
  }).pipe(Effect.scoped, as(service))
  assert.strictEqual(yield* failures, 2)
})

test("A lock that the next fiber of the same process gets at once is counted as handed over", function* () {
  const scope = yield* Scope.make()
  yield* Scope.provide(Lock.scoped("a"), scope)
  const next = yield* background(Lock.withLock(Effect.void, "a"))
  yield* Scope.close(scope, Exit.void)
  yield* Fiber.join(next)
  assert.strictEqual((yield* metricValues)["redis_lock.handovers lock.kind=reentrant"], 1)
})

test("A waiter that is woken by the interval is counted as polling, and one that a message wakes is not", function* () {
  const polls = Effect.map(metricValues, (values) =>
    ["reentrant", "fair", "semaphore"].map((kind) => values[`redis_lock.polls lock.kind=${kind}`] ?? 0)
  )
  const semaphore = Semaphore.make("permits", { permits: 1 })
  const work = (body: Effect.Effect<void>) =>
    Effect.all(
      [
        Lock.withLock(body, "plain"),
        Lock.withLock(body, FairLock.make("fair")),
        Semaphore.withPermits(body, semaphore, 1)
      ],
      { concurrency: "unbounded" }
    )
  const holder = yield* Effect.forkChild(elsewhere(work(Effect.sleep(500))))
  yield* TestClock.adjust(100)
  const waiter = yield* Effect.forkChild(work(Effect.void))
  yield* TestClock.adjust(500)
  yield* Fiber.join(holder)
  yield* Fiber.join(waiter)
  assert.deepStrictEqual(yield* polls, [0, 0, 0])

  const long = yield* Effect.forkChild(elsewhere(work(Effect.sleep("10 seconds"))))
  yield* TestClock.adjust(100)
  const patient = yield* Effect.forkChild(work(Effect.void))
  yield* TestClock.adjust("5 seconds")
  const [plain, , permits] = yield* polls
  assert.isAtLeast(plain!, 3)
  assert.isAtLeast(permits!, 3)
  yield* TestClock.adjust("10 seconds")
  yield* Fiber.join(long)
  yield* Fiber.join(patient)
})

test("The polls of a SpinLock, which does nothing else, do not count, nor do those of a latch, which has no metrics", function* () {
  const spin = SpinLock.make("spin")
  yield* CountDownLatch.trySetCount("latch", 1)
  yield* Effect.forkChild(elsewhere(Lock.withLock(Effect.sleep("10 seconds"), spin)))
  yield* TestClock.adjust(100)
  const waiters = [
    yield* Effect.forkChild(Lock.withLock(Effect.void, spin)),
    yield* Effect.forkChild(CountDownLatch.await("latch"))
  ]
  yield* TestClock.adjust("5 seconds")
  const counts = yield* metricValues
  assert.strictEqual(counts["redis_lock.polls lock.kind=spin"], 0)
  const kinds = Object.keys(counts).map((name) => /lock.kind=(\w+)/.exec(name)?.[1])
  assert.deepStrictEqual([...new Set(kinds)], ["spin"])
  yield* CountDownLatch.countDown("latch")
  yield* TestClock.adjust("10 seconds")
  for (const waiter of waiters) yield* Fiber.join(waiter)
})

test("Commands that fail are counted by their reason, and every reason is there from the start", function* () {
  let reason: StoreReason = "OutOfMemory"
  const failing = fakeDriver({
    eval: () => Effect.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error("no") }))
  })
  yield* Effect.gen(function* () {
    const before = yield* metricValues
    assert.strictEqual(before["redis_lock.store.errors error.type=ReadOnly"], 0)
    yield* Effect.flip(Lock.tryScoped("a"))
    yield* Effect.flip(Lock.tryScoped("a"))
    reason = "ReadOnly"
    yield* Effect.flip(Lock.isLocked("a"))
  }).pipe(Effect.scoped, Effect.provide(Layer.provide(RedisLock.layer(), failing)))
  assert.deepStrictEqual(yield* metricsAboveZero, {
    "redis_lock.store.errors error.type=OutOfMemory": 2,
    "redis_lock.store.errors error.type=ReadOnly": 1
  })
})

test("A grant that no replica acknowledges counts as a command that failed", function* () {
  const alone = fakeDriver({
    eval: () => Effect.succeed(1),
    // the script has the grant, and WAIT counts no replica
    sendBlocking: (_, commands) => Effect.succeed(commands.map(([name]) => (name === "EVAL" ? [1] : 0)))
  })
  yield* Effect.flip(Lock.withLock(Effect.void, "a", { waitTime: 0, acknowledge: { replicas: 1 } })).pipe(
    Effect.provide(Layer.provide(RedisLock.layer(), alone))
  )
  assert.deepStrictEqual(yield* metricsAboveZero, { "redis_lock.store.errors error.type=NotReplicated": 1 })
})

test("Durations are exported in seconds, under the names that Prometheus gives them", function* () {
  yield* Effect.forkChild(Lock.withLock(Effect.sleep("2 seconds"), "a"))
  yield* TestClock.adjust("2 seconds")
  const page = yield* PrometheusMetrics.format({ metricNameMapper: LockMetrics.prometheusName })
  for (const line of [
    "# TYPE redis_lock_acquisitions_total counter",
    `redis_lock_acquisitions_total{lock_kind="reentrant"} 1`,
    "# TYPE redis_lock_held gauge",
    `redis_lock_hold_duration_seconds_bucket{lock_kind="reentrant",le="1"} 0`,
    `redis_lock_hold_duration_seconds_bucket{lock_kind="reentrant",le="2.5"} 1`,
    `redis_lock_hold_duration_seconds_sum{lock_kind="reentrant"} 2`
  ]) {
    assert.include(page.split("\n"), line)
  }
  assert.strictEqual(LockMetrics.prometheusName("http.requests"), "http.requests")
})

test("A grant that is gone before its holder can begin counts neither as a hold nor as a loss", function* () {
  const server = yield* testStore()
  let isGone = false
  // in memory, the reply to the command that confirms the grant is there at once
  const store = wrappedStore(server.store, ({ operation, run }) => {
    if (operation !== "lock/renew" || isGone) return run()
    isGone = true
    return Effect.andThen(server.delete("a"), run())
  })
  const [holder, waiter] = [yield* clientOf(server), yield* clientOf({ store })]
  const section = yield* sectionUntilTold((body) => as(holder)(Lock.withLock(body, "a")))
  const waiting = yield* background(as(waiter)(Lock.withLock(Effect.void, "a")))
  yield* TestClock.adjust("3 seconds")
  yield* section.end
  yield* TestClock.adjust("3 seconds")
  yield* Fiber.join(waiting)
  assert.isTrue(isGone)
  assert.deepInclude(yield* metricValues, {
    "redis_lock.acquisitions lock.kind=reentrant": 2,
    "redis_lock.held lock.kind=reentrant": 0,
    "redis_lock.losses lock.kind=reentrant lock.loss.reason=NotOwner": 0
  })
})

/** Has another fiber do something before the n-th operation of those that it runs. */
class Meanwhile extends Scheduler.MixedScheduler {
  operations = 0
  readonly #at: number
  readonly #meanwhile: () => void

  constructor(at: number, meanwhile: () => void) {
    super()
    this.#at = at
    this.#meanwhile = meanwhile
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (++this.operations !== this.#at) return super.shouldYield(fiber)
    this.#meanwhile()
    return true
  }
}

test("A lock that another fiber of its owner releases just before this one re-enters it is acquired anew, and not lost", function* () {
  const service = yield* clientOf(yield* testStore())
  const context = yield* Effect.context<never>()
  const reentry = { isSent: false }
  let at = 0
  while (!reentry.isSent) {
    at++
    yield* Effect.gen(function* () {
      const holding = yield* Lock.scoped("a")
      const scheduler = new Meanwhile(at, () => {
        reentry.isSent = (holding as unknown as Hold).lease.holds > 1
        if (!reentry.isSent) Effect.runForkWith(context)(holding.release)
      })
      yield* Effect.provideService(Lock.withLock(Effect.void, "a"), Scheduler.Scheduler, scheduler)
    }).pipe(Effect.scoped, Lock.withOwner, as(service))
    assert.deepInclude(
      yield* metricValues,
      {
        "redis_lock.held lock.kind=reentrant": 0,
        "redis_lock.losses lock.kind=reentrant lock.loss.reason=NotOwner": 0
      },
      `before operation ${at}`
    )
  }
  assert.isAbove(at, 4)
})
