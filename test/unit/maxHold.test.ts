/**
 * Locks and leased permits that are held for no longer than `maxHold`, although the watchdog renews them.
 */
import { assert } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { InvalidLockOptions, LeaderElection, Lock, LockStore, RedisLock, type TimeOptions } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { loss } from "../kit/exits.ts"
import { sectionsOf } from "../kit/sectionsOf.ts"
import { as, clientOf, quorumOf, testStore, testStores } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const maxHold = "5 minutes"

const under = (lock: Lock.Lock<RedisLock.RedisLock, unknown, unknown>, options?: TimeOptions) =>
  Lock.withLock(Effect.never, lock, options)

for (const [kind, section] of Object.entries(sectionsOf)) {
  test(`A ${kind} is lost once it has been held for its maxHold, and is free as soon as its section has ended`, function* () {
    const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store)))
    const held = yield* background(run(section(Effect.never, { maxHold })))
    yield* TestClock.adjust("299 seconds")
    assert.isUndefined(held.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.strictEqual(loss(yield* Fiber.await(held)).reason, "HeldTooLong")
    // long before the end of the lease
    const next = yield* background(run(section(Effect.never, { maxHold, waitTime: "2 seconds" })))
    yield* TestClock.adjust("3 seconds")
    assert.isUndefined(next.pollUnsafe())
    yield* Fiber.interrupt(next)
  })
}

test("Without maxHold a lock is held for as long as its section lasts", function* () {
  const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store)))
  const section = Effect.as(Effect.sleep("2 hours"), "done")
  const held = yield* background(run(Lock.withLock(section, "a")))
  yield* TestClock.adjust("2 hours")
  assert.strictEqual(yield* Fiber.join(held), "done")
})

test("The maxHold of a client is that of its locks, which an acquisition, a lock and an election override", function* () {
  const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store, { maxHold })))
  const start = <A, E>(self: Effect.Effect<A, E, RedisLock.RedisLock>) => background(run(self))
  const plain = yield* start(under(Lock.make("plain")))
  const longer = yield* start(under(Lock.make("longer"), { maxHold: "10 minutes" }))
  const own = yield* start(under(Lock.make("own", { maxHold: "1 minute" })))
  const endless = yield* start(under(Lock.make("endless"), { maxHold: Duration.infinity }))
  const fixed = yield* start(under(Lock.make("fixed"), { leaseTime: "1 hour" }))
  const leader = yield* start(LeaderElection.whileLeader(Effect.never, LeaderElection.make("leader")))
  yield* TestClock.adjust("1 minute")
  assert.strictEqual(loss(yield* Fiber.await(own)).reason, "HeldTooLong")
  assert.isUndefined(plain.pollUnsafe())
  yield* TestClock.adjust("4 minutes")
  assert.strictEqual(loss(yield* Fiber.await(plain)).reason, "HeldTooLong")
  yield* TestClock.adjust("5 minutes")
  assert.strictEqual(loss(yield* Fiber.await(longer)).reason, "HeldTooLong")
  for (const fiber of [endless, fixed, leader]) assert.isUndefined(fiber.pollUnsafe())
  assert.isTrue(yield* run(Lock.isLocked("leader")))
})

test("maxHold counts from the outermost acquisition", function* () {
  const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store)))
  const inner = Lock.withLock(Effect.sleep("1 minute"), "a", { maxHold: "1 hour" })
  const body = Effect.sleep("1 minute").pipe(Effect.andThen(inner), Effect.andThen(Effect.never))
  const section = Lock.withLock(body, "a", { maxHold })
  const held = yield* background(run(section))
  yield* TestClock.adjust(maxHold)
  assert.strictEqual(loss(yield* Fiber.await(held)).reason, "HeldTooLong")
})

test("A re-entry neither shortens a fixed lease that is longer than the client's maxHold, nor outlasts it", function* () {
  // the outer section has failed by the loss of the inner one
  expectWarning(/^The lock's release went wrong after its section had failed\./)
  const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store, { maxHold })))
  const inner = (body: Effect.Effect<void>) => Effect.andThen(Effect.sleep("10 minutes"), Lock.withLock(body, "a"))
  const body = Effect.andThen(inner(Effect.sleep("1 minute")), inner(Effect.never))
  const held = yield* background(run(Lock.withLock(body, "a", { leaseTime: "1 hour" })))
  yield* TestClock.adjust("59 minutes")
  assert.isUndefined(held.pollUnsafe())
  yield* TestClock.adjust("1 minute")
  assert.strictEqual(loss(yield* Fiber.await(held)).reason, "HeldTooLong")
})

const prolonged = Effect.flatMap(Lock.currentHolding("a"), (holding) => holding.renew("1 hour"))

for (const [how, prolong] of Object.entries<Effect.Effect<void, unknown, RedisLock.RedisLock>>({
  "that was renewed for longer": prolonged,
  "that was renewed for longer beside another re-entry": Effect.andThen(
    Effect.forkChild(Lock.withLock(Effect.sleep("10 seconds"), "a"), { startImmediately: true }),
    Effect.andThen(Effect.sleep("1 second"), prolonged)
  ),
  "that a re-entry has prolonged": Lock.withLock(Effect.void, "a", { leaseTime: "1 hour" })
})) {
  test(`A re-entry into a fixed lease ${how} may last as long as that`, function* () {
    const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store, { maxHold })))
    const renewed = Lock.withLock(Effect.sleep("40 minutes"), "a")
    const body = prolong.pipe(Effect.andThen(Effect.sleep("10 minutes")), Effect.andThen(renewed), Effect.as("done"))
    const held = yield* background(run(Lock.withLock(body, "a", { leaseTime: "1 minute" })))
    yield* TestClock.adjust("51 minutes")
    assert.strictEqual(yield* Fiber.join(held), "done")
  })
}

test("While the finalizers of a section that was held too long run, its lock is still taken", function* () {
  const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store)))
  const section = Effect.ensuring(Effect.never, Effect.sleep("10 seconds"))
  const held = yield* background(run(Lock.withLock(section, "a", { maxHold })))
  yield* TestClock.adjust("309 seconds")
  assert.isTrue(yield* run(Lock.isLocked("a")))
  yield* TestClock.adjust("1 second")
  assert.isTrue(Exit.isFailure(yield* Fiber.await(held)))
  assert.isFalse(yield* run(Lock.isLocked("a")))
})

test("A holding of a scope is told of its maxHold, and its lock is free when its lease ends", function* () {
  const run = as(yield* Effect.flatMap(testStore(), (store) => clientOf(store)))
  expectWarning(/^The lock's scope has closed, but its release went wrong\./)
  const holding = yield* run(Lock.scoped("a", { maxHold }))
  const told = yield* background(holding.awaitLost)
  yield* TestClock.adjust(maxHold)
  const lost = loss(yield* Fiber.await(told))
  assert.strictEqual(lost.reason, "HeldTooLong")
  assert.include(lost.message, "maxHold")
  assert.isFalse(yield* holding.isHeld)
  yield* TestClock.adjust("30 seconds")
  assert.isFalse(yield* run(Lock.isLocked("a")))
})

test("On a quorum a lock is held for no longer than its maxHold", function* () {
  const run = as(yield* Effect.flatMap(testStores(3), (stores) => quorumOf(stores, { maxHold })))
  const held = yield* background(run(Lock.withLock(Effect.never, "a")))
  yield* TestClock.adjust(maxHold)
  assert.strictEqual(loss(yield* Fiber.await(held)).reason, "HeldTooLong")
})

test("A maxHold that is no period is refused before any command, and one from the environment counts", function* () {
  const store = yield* testStore()
  const run = as(yield* clientOf(store))
  for (const wrong of [0, -1, Number.NaN, "soon" as Duration.Input]) {
    const error = yield* Effect.flip(run(Lock.withLock(Effect.void, "a", { maxHold: wrong })))
    assert.instanceOf(error, InvalidLockOptions)
    assert.strictEqual(error.option, "maxHold")
    const refused = yield* Layer.build(RedisLock.layerFromStore({ maxHold: wrong })).pipe(
      Effect.provideService(LockStore.LockStore, store.store),
      Effect.flip
    )
    assert.strictEqual(refused.option, "maxHold")
  }
  assert.strictEqual(store.asked, 0)
  const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ REDIS_LOCK_MAX_HOLD: "1 minute" }))
  assert.deepStrictEqual(
    (yield* Effect.provide(RedisLock.settings, environment)).maxHold,
    Duration.minutes(1) as Duration.Input
  )
})
