/**
 * What goes wrong in one member, seen from outside: stores in memory that can be watched and made to fail.
 */
import { sectionUntilTold } from "../kit/sections.ts"
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Option, Schedule } from "effect"
import {
  Lock,
  LockLost,
  LockTimeout,
  MultiLock,
  ReadWriteLock,
  type RedisLock,
  RedLock,
  SpinLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { metricValues } from "../kit/metrics.ts"
import { pass } from "../kit/passTime.ts"
import { as, clientOf, testStores } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

/** Two locks on a store of their own each, and both as one. */
const twoStoresWith = Effect.fnUntraced(function* (options?: { readonly leaseTime: Duration.Input }) {
  const stores = yield* testStores(2)
  const [a, b] = [
    Lock.provide(Lock.make("a", options), yield* clientOf(stores[0]!)),
    Lock.provide(Lock.make("b", options), yield* clientOf(stores[1]!))
  ]
  return { stores, a, b, both: MultiLock.make([a, b]) }
})

const twoStores = twoStoresWith()

const failures = <A, E>(exit: Exit.Exit<A, E>): ReadonlyArray<E> =>
  Exit.isFailure(exit) ? exit.cause.reasons.flatMap((reason) => (reason._tag === "Fail" ? [reason.error] : [])) : []

test("A lock of any number of members of one service takes one command to acquire and one to release", function* () {
  const [store] = yield* testStores(1)
  const lock = MultiLock.make(["a", "b", "c"].map((name) => Lock.make(name)))
  const use = as(yield* clientOf(store!))
  yield* use(Lock.withLock(Effect.void, lock))
  assert.deepStrictEqual(store!.operations, ["multi_lock/acquire", "multi_lock/release"])
  // also where one of them is taken: nothing has to be given back
  store!.operations.length = 0
  const other = as(yield* clientOf(store!))
  const denied = other(Effect.scoped(Lock.tryScoped(lock)))
  assert.deepStrictEqual(yield* use(Lock.withLock(denied, "b")), Option.none())
  assert.deepStrictEqual(store!.operations, ["lock/acquire", "multi_lock/acquire", "lock/release"])
})

test("A lock of several takes names for plain locks of these names, beside locks of any kind", function* () {
  const [store] = yield* testStores(1)
  const use = as(yield* clientOf(store!))
  const lock = MultiLock.make(["a", ReadWriteLock.make("b").readLock, "c"])
  const inside = Effect.gen(function* () {
    const { token } = yield* Lock.currentHolding(lock)
    assert.deepStrictEqual(Object.keys(token), ["a", "b", "c"])
    for (const name of ["a", "c"]) assert.strictEqual((yield* Lock.currentHolding(name)).token, token[name])
  })
  yield* use(inside.pipe(Lock.withLock(lock)))
  assert.isFalse(yield* use(Lock.isLocked("a")))
  const refused = yield* use(Effect.flip(Lock.withLock(Effect.void, MultiLock.make(["a", ""]))))
  assert.strictEqual(refused._tag, "InvalidLockName")
})

test("A lock of thousands of names keeps the server busy for no longer than a thousand names take", function* () {
  const [store] = yield* testStores(1)
  const lock = MultiLock.make(Array.from({ length: 2500 }, (_, i) => Lock.make(`many:${i}`)))
  yield* Effect.flatMap(Lock.withLock(Lock.isLocked(lock), lock), (isLocked) =>
    Effect.sync(() => assert.isTrue(isLocked))
  ).pipe(as(yield* clientOf(store!)))
  const commands = (operation: string) => store!.operations.filter((other) => other === operation).length
  assert.strictEqual(commands("multi_lock/acquire"), 3)
  assert.strictEqual(commands("multi_lock/release"), 3)
})

test("A wait for a lock of several costs two commands, and one that acquires it", function* () {
  const [store] = yield* testStores(1)
  const options = { fallbackInterval: "10 hours", label: "" } as const
  const lock = MultiLock.make(["a", "b", "c"].map((name) => Lock.make(name)))
  const holder = as(yield* clientOf(store!, options))
  const held = yield* sectionUntilTold((body) => holder(Lock.withLock(body, "b", { leaseTime: "20 hours" })))
  yield* TestClock.adjust(1)
  store!.operations.length = 0
  const waiter = yield* Effect.succeed("in").pipe(Lock.withLock(lock), as(yield* clientOf(store!, options)), background)
  // a waiter asks every thirty seconds, however long its fallbackInterval is
  yield* TestClock.adjust("20 seconds")
  assert.isBelow(store!.operations.length, 5)
  yield* held.end
  yield* TestClock.adjust("1 second")
  assert.strictEqual(yield* Fiber.join(waiter), "in")
})

for (const hasOwn of [true, false]) {
  const next = hasOwn ? "a waiter of its process, then to the others" : "the waiters of other processes"
  test(`The release of a lock of several hands a member to ${next}, one after the other, with one command each`, function* () {
    const [store] = yield* testStores(1)
    const options = { fallbackInterval: "1 hour", label: "" } as const
    const [first, second, third] = [
      yield* clientOf(store!, options),
      yield* clientOf(store!, options),
      yield* clientOf(store!, options)
    ]
    const letGo = yield* Deferred.make<void>()
    const served: Array<string> = []
    const start = <A, E>(service: typeof first, section: Effect.Effect<A, E, RedisLock.RedisLock>) =>
      Effect.tap(section.pipe(as(service), background), () => TestClock.adjust(10))
    yield* start(first, Lock.withLock(Deferred.await(letGo), MultiLock.make(["a", "b"])))
    const ofOthers = { "of the second": second, "of the third": third }
    const waiters = Object.entries(hasOwn ? { "of its process": first, ...ofOthers } : ofOthers)
    const waiting = yield* Effect.forEach(waiters, ([who, service]) =>
      start(
        service,
        Lock.withLock(
          Effect.delay(
            Effect.sync(() => void served.push(who)),
            1
          ),
          "a"
        )
      )
    )
    store!.operations.length = 0
    yield* Deferred.succeed(letGo, undefined)
    yield* TestClock.adjust(10)
    yield* Effect.forEach(waiting, (fiber) => Fiber.join(fiber))
    assert.deepStrictEqual(
      served,
      waiters.map(([who]) => who)
    )
    // whoever is told begins with the message, and extends the lease
    const sections = waiters.flatMap(([, service]) => [
      service === first ? "lock/acquire" : "lock/renew",
      "lock/release"
    ])
    assert.deepStrictEqual(store!.operations, ["multi_lock/release", ...sections])
  })
}

test("A lock of several may be a member of another, which acquires it more than once", function* () {
  const [near, far] = yield* testStores(2)
  const inner = MultiLock.make(["a", "b"].map((name) => Lock.make(name)))
  const outer = MultiLock.make([inner, Lock.provide(Lock.make("c"), yield* clientOf(far!))])
  const holder = as(yield* clientOf(far!))
  const held = yield* sectionUntilTold((body) => holder(Lock.withLock(body, "c")))
  yield* TestClock.adjust(1)
  const areFree = Effect.all([near!.isFree("a"), near!.isFree("b"), far!.isFree("c")])
  const waiter = yield* areFree.pipe(Lock.withLock(outer), as(yield* clientOf(near!)), background)
  yield* TestClock.adjust("1 minute")
  assert.deepStrictEqual(yield* areFree, [true, true, false], "it keeps nothing while it waits")
  far!.operations.length = 0
  yield* held.end
  yield* TestClock.adjust("1 minute")
  assert.deepStrictEqual(yield* Fiber.join(waiter), [false, false, false])
  assert.deepStrictEqual(yield* areFree, [true, true, true])
  assert.deepStrictEqual(far!.operations, ["lock/release", "lock/renew", "lock/release"])
})

test("A lock of several that has lost one member fails with that loss, even if another cannot be released", function* () {
  expectWarning(/^Could not release in time; the lock frees itself when its lease ends\./)
  const { both, stores } = yield* twoStores
  stores[0]!.refuses = (operation) => operation.endsWith("/release")
  const section = yield* Effect.never.pipe(Lock.withLock(both), background)
  yield* TestClock.adjust(1)
  yield* stores[1]!.delete("b")
  yield* TestClock.adjust("1 minute")
  const exit = yield* Fiber.await(section)
  assert.isFalse(Exit.hasInterrupts(exit), "nobody has interrupted it")
  const lost = failures(exit).find((error) => error instanceof LockLost)
  assert.strictEqual(lost?.lock, "b")
})

for (const whose of ["a lock of several", "its members"]) {
  test(`A fixed lease of ${whose} begins for each member with the last member's grant`, function* () {
    const lease = { leaseTime: "10 seconds" } as const
    const isOwn = whose === "its members"
    const { a, b, both, stores } = yield* twoStoresWith(isOwn ? lease : undefined)
    stores[1]!.delay = (operation) => (operation.endsWith("acquire") ? 4000 : 0)
    const asked = yield* Effect.forkChild(
      Effect.scoped(
        Effect.gen(function* () {
          const { remaining } = yield* Lock.scoped(both, isOwn ? undefined : lease)
          return [yield* remaining, yield* Lock.remainingTime(a), yield* Lock.remainingTime(b)] as const
        })
      )
    )
    yield* TestClock.adjust("5 seconds")
    const [remaining, ofA, ofB] = yield* Fiber.join(asked)
    assert.strictEqual(Duration.toMillis(remaining), 10_000 - 102)
    for (const inStore of [ofA, ofB]) assert.deepStrictEqual(inStore, Option.some(Duration.seconds(10)))
  })
}

for (const waitTime of ["0 seconds", "1 second"] as const) {
  test(`A lock of several whose fixed leases end before all are held times out after its waitTime of ${waitTime}, which counts once`, function* () {
    const timeouts = Effect.map(metricValues, (values) => values["redis_lock.timeouts lock.kind=reentrant"] ?? 0)
    const earlier = yield* timeouts
    const { both, stores } = yield* twoStores
    // the first is over when its renewal is answered
    stores[0]!.delay = () => 60
    stores[1]!.delay = () => 95
    const options = { leaseTime: "100 millis", waitTime } as const
    const asked = yield* background(Effect.flip(Lock.withLock(Effect.void, both, options)))
    yield* pass(3)
    const error = yield* Fiber.join(asked)
    assert.instanceOf(error, LockTimeout)
    assert.strictEqual(yield* timeouts, earlier + 1)
    // nothing stays behind, and nothing goes on
    yield* pass(1)
    const sent = stores[0]!.operations.length
    yield* pass(1)
    assert.strictEqual(stores[0]!.operations.length, sent)
  })
}

test("A member of a lock of several keeps its own lease, and gives it to no other member, also on one server", function* () {
  const [store] = yield* testStores(1)
  const use = as(yield* clientOf(store!))
  const remaining = Effect.all(["a", "b", "c"].map((name) => Effect.map(Lock.remainingTime(name), Option.getOrThrow)))
  const long = Lock.make("b", { leaseTime: "1 hour" })
  for (const members of [
    [long, "a", "c"],
    ["a", long, "c"]
  ]) {
    store!.operations.length = 0
    const leases = yield* use(Lock.withLock(remaining, MultiLock.make(members)))
    assert.deepStrictEqual(leases.map(Duration.toSeconds), [30, 3600, 30])
    assert.deepStrictEqual(store!.operations.filter((operation) => operation.endsWith("acquire")).toSorted(), [
      "lock/acquire",
      "multi_lock/acquire"
    ])
  }
  // a lease of its own, not renewed, ends its section
  const short = MultiLock.make(["a", Lock.make("b", { leaseTime: "5 seconds" })])
  const section = yield* Effect.never.pipe(Lock.withLock(short), use, background)
  yield* TestClock.adjust("6 seconds")
  const lost = yield* Effect.flip(Fiber.join(section))
  assert.deepInclude(lost, { _tag: "LockLost", lock: "b", reason: "Expired" })
})

test("The end of a SpinLock's schedule ends the wait of a lock composed of it with LockTimeout", function* () {
  const [store] = yield* testStores(1)
  const spinning = SpinLock.make("a", { schedule: Schedule.recurs(3) })
  const use = as(yield* clientOf(store!))
  yield* Effect.gen(function* () {
    for (const lock of [MultiLock.make([spinning]), RedLock.make([spinning])]) {
      const waiting = yield* Effect.forkChild(use(Effect.flip(Lock.withLock(Effect.void, lock))))
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(waiting)
      assert.instanceOf(error, LockTimeout)
      assert.strictEqual(error.lock, lock.name)
    }
  }).pipe(Lock.withLock("a"), as(yield* clientOf(store!)))
})

test("A lock of several reports each failure of its release", function* () {
  expectWarning(/^Could not release in time; the lock frees itself when its lease ends\./)
  const { both, stores } = yield* twoStores
  for (const store of stores) store.refuses = (operation) => operation.endsWith("/release")
  const section = yield* Effect.succeed("done").pipe(Lock.withLock(both), background)
  yield* TestClock.adjust("1 minute")
  const exit = yield* Fiber.await(section)
  assert.deepStrictEqual(
    failures(exit)
      .map((error) => (error._tag === "InvalidLockOptions" ? error._tag : error.lock))
      .toSorted(),
    ["a", "b"]
  )
})

test("tryScoped gives None, not a failure, if one member is lost while another is requested", function* () {
  const { a, both, stores } = yield* twoStores
  stores[1]!.delay = (operation) => (operation.endsWith("acquire") ? 3000 : 0)
  const asked = Effect.scoped(Effect.exit(Lock.tryScoped(both)))
  const seen = yield* Deferred.make<Exit.Exit<Option.Option<unknown>, unknown>>()
  const outer = yield* Effect.flatMap(asked, (exit) => Deferred.succeed(seen, exit)).pipe(
    Effect.uninterruptible,
    Lock.withLock(a),
    background
  )
  yield* TestClock.adjust("1 second")
  assert.isTrue(yield* Lock.forceRelease(a))
  yield* TestClock.adjust("20 seconds")
  const exit = yield* Deferred.await(seen)
  assert.deepStrictEqual(exit, Exit.succeed(Option.none()))
  yield* Fiber.await(outer)
  assert.isTrue(yield* stores[1]!.isFree("b"))
})

test("In a section of several locks of which one is lost, Lock.currentHolding of them and of that one fails with LockLost", function* () {
  const { a, b, both } = yield* twoStores
  yield* Effect.gen(function* () {
    yield* Lock.forceRelease(b)
    const lost = yield* Effect.flip(Lock.currentHolding(both))
    assert.instanceOf(lost, LockLost)
    assert.strictEqual(lost.lock, "b")
    assert.strictEqual(yield* Effect.flip(Lock.currentHolding(b)), lost)
    assert.isTrue(Exit.isSuccess(yield* Effect.exit(Lock.currentHolding(a))))
  }).pipe(
    Effect.uninterruptible,
    Lock.withLock(both),
    Effect.catchTag("LockLost", () => Effect.void)
  )
})

test("A lock of several one of whose members was released early tells of the loss of another", function* () {
  const { a, b, both } = yield* twoStores
  const section = Effect.gen(function* () {
    const { ensureHeld } = yield* Lock.currentHolding(both)
    yield* (yield* Lock.currentHolding(a)).release
    assert.include(yield* Effect.flip(ensureHeld), { lock: "a", reason: "Released" })
    yield* Lock.forceRelease(b)
    assert.include(yield* Effect.flip(ensureHeld), { lock: "b", reason: "NotOwner" })
  })
  const lost = yield* Effect.flip(section.pipe(Effect.uninterruptible, Lock.withLock(both)))
  assert.deepInclude(lost, { _tag: "LockLost", lock: "b", reason: "NotOwner" })
})

test("A lock of several refuses a member that is given twice, even within a member, before any command", function* () {
  const { a, b, both, stores } = yield* twoStores
  for (const lock of [MultiLock.make([a, b, a]), MultiLock.make([a, both]), MultiLock.make([both, both])]) {
    const error = yield* Effect.flip(Lock.withLock(Effect.void, lock))
    assert.strictEqual(error._tag, "InvalidLockOptions")
    assert.match(error.message, /"a(, b)?" is among its members twice/)
  }
  const { readLock, writeLock } = ReadWriteLock.make("rw")
  const use = as(yield* clientOf(stores[0]!))
  for (const members of [
    [writeLock, b, writeLock],
    [readLock, writeLock],
    [writeLock, readLock]
  ]) {
    const error = yield* use(Effect.flip(Lock.withLock(Effect.void, MultiLock.make(members))))
    assert.strictEqual(error._tag, "InvalidLockOptions")
    assert.include(error.message, `"rw" is among its members twice`)
  }
  assert.isEmpty(stores.flatMap(({ operations }) => operations))
})

test("A lock of several has a token for every member, whatever the members are called", function* () {
  const [store, other] = yield* testStores(2)
  const [here, there] = [yield* clientOf(store!), yield* clientOf(other!)]
  const names = ["__proto__", "constructor", "plain"]
  const lock = MultiLock.make([
    ...names.map((name) => Lock.provide(Lock.make(name), here)),
    Lock.provide(Lock.make("plain"), there)
  ])
  const tokens = yield* Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock))
  assert.deepStrictEqual(Object.keys(tokens).toSorted(), [...names, "plain#2"].toSorted())
  for (const name of Object.keys(tokens)) assert.typeOf(tokens[name], "bigint")
})
