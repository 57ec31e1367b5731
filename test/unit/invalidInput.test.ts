/**
 * Whatever a caller passes for a name, an option or a duration: what cannot be is refused by a typed error, before any command.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Option, Result, Schedule } from "effect"
import {
  CountDownLatch,
  FairLock,
  FencedLock,
  Lock,
  LockStore,
  MultiLock,
  NonReentrantLock,
  PermitId,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  RedLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { testsThrough } from "../kit/test.ts"
import { noting, wrappedStoreLayer } from "../kit/wrappedStore.ts"

/** What no compiler lets through. */
const forced = <A>(value: unknown): A => value as A

const circular: { self?: unknown } = {}
circular.self = circular

class Unprintable {
  toString(): string {
    throw new Error("not to be printed")
  }
}

const commands = { count: 0 }

const counting = wrappedStoreLayer(noting(() => commands.count++)).pipe(Layer.provide(LockStore.layerMemory))

const service = Layer.provide(RedisLock.layerFromStore(), counting)

const test = testsThrough<RedisLock.RedisLock>(Effect.provide(service))

/** Runs something that must fail with an error of this tag, and send nothing. */
const refuses = (tag: "InvalidLockName" | "InvalidLockOptions", run: () => Effect.Effect<unknown, unknown, any>) =>
  Effect.gen(function* () {
    const before = commands.count
    const made = Result.try(run)
    assert.isTrue(Result.isSuccess(made), "it must not throw")
    if (Result.isFailure(made)) return ""
    const exit = yield* Effect.exit(Effect.timeout(made.success, "1 second"))
    assert.isTrue(Exit.isFailure(exit), "it must fail")
    const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
    assert.isDefined(error, Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "")
    assert.strictEqual((error as { readonly _tag: string })._tag, tag)
    assert.strictEqual(commands.count, before, "commands that were sent")
    return (error as Error).message
  })

const badNames: ReadonlyArray<unknown> = [
  "",
  "a\0b",
  "x".repeat(1025),
  // 1024 bytes are allowed, not characters
  "é".repeat(513),
  "s\ud800",
  "\udc00s",
  5,
  null,
  {},
  [],
  circular,
  Symbol("name"),
  Object.create(null),
  new Unprintable()
]

const badDurations: ReadonlyArray<unknown> = [
  {},
  new Date(),
  new Map(),
  new Set([1]),
  circular,
  { seconds: Number.NaN },
  { seconds: "5" },
  [1],
  [Number.NaN, 0],
  null,
  true,
  "soon",
  "5",
  Symbol("soon"),
  () => 5,
  -1,
  Number.NaN,
  "-1 seconds",
  2 ** 53 + 2,
  new Unprintable()
]

/** Besides what no duration is. */
const badPeriods: ReadonlyArray<unknown> = [...badDurations, 0, "0 seconds", Number.POSITIVE_INFINITY, "Infinity"]

const badLeases: ReadonlyArray<unknown> = [...badPeriods, 1, 2, "1 milli"]

type Use = (name: string) => Effect.Effect<unknown, unknown, any>

const locks: Record<string, (name: string, options?: Lock.AcquireOptions) => Lock.Lock<any, any, any>> = {
  "Lock.make": Lock.make,
  "FairLock.make": FairLock.make,
  "FencedLock.make": FencedLock.make,
  "NonReentrantLock.make": NonReentrantLock.make,
  "SpinLock.make": SpinLock.make,
  "ReadWriteLock.make, read": (name, options) => ReadWriteLock.make(name, options).readLock,
  "ReadWriteLock.make, write": (name, options) => ReadWriteLock.make(name, options).writeLock,
  "MultiLock.make": (name, options) => MultiLock.make([Lock.make(name)], options),
  "RedLock.make": (name, options) => RedLock.make([Lock.make(name)], options)
}

const onLock: Record<string, (lock: Lock.Lock<any, any, any> | string) => Effect.Effect<unknown, unknown, any>> = {
  // a plain object alone would be options, and what comes next the lock
  "Lock.scoped": (lock) => Effect.scoped(Lock.scoped(lock, {})),
  "Lock.scoped, data last": (lock) => Effect.scoped(Lock.scoped({})(lock)),
  "Lock.tryScoped": (lock) => Effect.scoped(Lock.tryScoped(lock, {})),
  "Lock.tryScoped, data last": (lock) => Effect.scoped(Lock.tryScoped({})(lock)),
  "Lock.withLock": (lock) => Lock.withLock(Effect.void, lock),
  "Lock.withLock, data last": (lock) => Effect.void.pipe(Lock.withLock(lock)),
  "Lock.withLockIfAvailable": (lock) => Lock.withLockIfAvailable(Effect.void, lock),
  "Lock.currentHolding": (lock) => Lock.currentHolding(lock),
  "Lock.inspect": (lock) => Lock.inspect(lock),
  "Lock.isLocked": (lock) => Lock.isLocked(lock),
  "Lock.remainingTime": (lock) => Lock.remainingTime(lock),
  "Lock.holdCount": (lock) => Lock.holdCount(lock),
  "Lock.isHeldByCurrentOwner": (lock) => Lock.isHeldByCurrentOwner(lock),
  "Lock.forceRelease": (lock) => Lock.forceRelease(lock)
}

const id = "0".repeat(32)

const byName: Record<string, Use> = {
  ...onLock,
  "Lock.provide": (name) =>
    RedisLock.RedisLock.use((service) => Lock.isLocked(Lock.provide(forced<Lock.Lock>(name), service))),
  "Semaphore.scoped": (name) => Effect.scoped(Semaphore.scoped(name, 1)),
  "Semaphore.withPermits": (name) => Semaphore.withPermits(Effect.void, name, 1),
  "Semaphore.withPermitsIfAvailable": (name) => Semaphore.withPermitsIfAvailable(Effect.void, name, 1),
  // a number alone would be permits, and what comes next the semaphore
  "Semaphore.acquire": (name) => Semaphore.acquire(name, 1),
  "Semaphore.acquire, data last": (name) => Semaphore.acquire(1)(name),
  "Semaphore.tryAcquire": (name) => Semaphore.tryAcquire(name, 1),
  "Semaphore.tryAcquire, data last": (name) => Semaphore.tryAcquire(1)(name),
  "Semaphore.release": (name) => Semaphore.release(name, 1),
  "Semaphore.release, data last": (name) => Semaphore.release(1)(name),
  "Semaphore.releaseIfExists": (name) => Semaphore.releaseIfExists(name, 1),
  "Semaphore.trySetPermits": (name) => Semaphore.trySetPermits(name, 1),
  "Semaphore.addPermits": (name) => Semaphore.addPermits(name, 1),
  "Semaphore.drainPermits": (name) => Semaphore.drainPermits(name),
  "Semaphore.availablePermits": (name) => Semaphore.availablePermits(name),
  "Semaphore.make": (name) => Semaphore.acquire(Semaphore.make(name, { permits: 1 })),
  "Semaphore.provide": (name) =>
    RedisLock.RedisLock.use((service) =>
      Semaphore.acquire(Semaphore.provide(forced<Semaphore.Semaphore>(name), service))
    ),
  "PermitSemaphore.scoped": (name) => Effect.scoped(PermitSemaphore.scoped(name, {})),
  "PermitSemaphore.tryScoped": (name) => Effect.scoped(PermitSemaphore.tryScoped(name, {})),
  "PermitSemaphore.withPermits": (name) => PermitSemaphore.withPermits(Effect.void, name, 1),
  "PermitSemaphore.withPermit": (name) => PermitSemaphore.withPermit(Effect.void, name),
  "PermitSemaphore.withPermitIfAvailable": (name) => PermitSemaphore.withPermitIfAvailable(Effect.void, name),
  "PermitSemaphore.trySetPermits": (name) => PermitSemaphore.trySetPermits(name, 1),
  "PermitSemaphore.setPermits": (name) => PermitSemaphore.setPermits(name, 1),
  "PermitSemaphore.addPermits": (name) => PermitSemaphore.addPermits(name, 1),
  "PermitSemaphore.availablePermits": (name) => PermitSemaphore.availablePermits(name),
  "PermitSemaphore.acquiredPermits": (name) => PermitSemaphore.acquiredPermits(name),
  "PermitSemaphore.totalPermits": (name) => PermitSemaphore.totalPermits(name),
  "PermitId.tryRelease": (name) => PermitId.tryRelease(name, [id]),
  "PermitId.release": (name) => PermitId.release(name, id),
  "PermitId.updateLeaseTime": (name) => PermitId.updateLeaseTime(name, id, 1000),
  "PermitId.leaseTime": (name) => PermitId.leaseTime(name, id),
  "PermitSemaphore.make": (name) => PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make(name, { permits: 1 })),
  "PermitSemaphore.provide": (name) =>
    RedisLock.RedisLock.use((service) =>
      PermitSemaphore.totalPermits(PermitSemaphore.provide(forced<PermitSemaphore.PermitSemaphore>(name), service))
    ),
  "CountDownLatch.trySetCount": (name) => CountDownLatch.trySetCount(name, 1),
  "CountDownLatch.countDown": (name) => CountDownLatch.countDown(name),
  "CountDownLatch.count": (name) => CountDownLatch.count(name),
  "CountDownLatch.await": (name) => CountDownLatch.await(name, {}),
  "CountDownLatch.delete": (name) => CountDownLatch.delete(name),
  "CountDownLatch.make": (name) => CountDownLatch.count(CountDownLatch.make(name)),
  "CountDownLatch.provide": (name) =>
    RedisLock.RedisLock.use((service) =>
      CountDownLatch.count(CountDownLatch.provide(forced<CountDownLatch.CountDownLatch>(name), service))
    ),
  "MultiLock.make, a member": (name) => Lock.isLocked(MultiLock.make([forced<Lock.Lock>(name)])),
  "RedLock.make, a member": (name) =>
    RedisLock.RedisLock.use((service) =>
      Lock.withLock(Effect.void, RedLock.make([Lock.provide(forced<Lock.Lock>(name), service)]))
    ),
  ...Object.fromEntries(
    Object.entries(locks).map(([title, make]): [string, Use] => [title, (name) => Lock.isLocked(make(name))])
  )
}

type Take = (value: any) => Effect.Effect<unknown, unknown, any>

const waits: Record<string, Take> = {
  "Lock.scoped": (waitTime) => Effect.scoped(Lock.scoped("a", { waitTime })),
  "Lock.withLock": (waitTime) => Lock.withLock(Effect.void, "a", { waitTime }),
  "Semaphore.scoped": (waitTime) => Effect.scoped(Semaphore.scoped("a", 1, { waitTime })),
  "Semaphore.withPermits": (waitTime) => Semaphore.withPermits(Effect.void, "a", 1, { waitTime }),
  "Semaphore.acquire": (waitTime) => Semaphore.acquire("a", 1, { waitTime }),
  "PermitSemaphore.scoped": (waitTime) => Effect.scoped(PermitSemaphore.scoped("a", { waitTime })),
  "PermitSemaphore.withPermits": (waitTime) => PermitSemaphore.withPermits(Effect.void, "a", 1, { waitTime }),
  "PermitSemaphore.withPermit": (waitTime) => PermitSemaphore.withPermit(Effect.void, "a", { waitTime }),
  "CountDownLatch.await": (waitTime) => CountDownLatch.await("a", { waitTime }),
  ...Object.fromEntries(
    Object.entries(locks).map(([title, make]): [string, Take] => [
      title,
      (waitTime) => Lock.withLock(Effect.void, make("a", { waitTime }))
    ])
  )
}

const leases: Record<string, Take> = {
  "Lock.scoped": (leaseTime) => Effect.scoped(Lock.scoped("a", { leaseTime })),
  "Lock.tryScoped": (leaseTime) => Effect.scoped(Lock.tryScoped("a", { leaseTime })),
  "Lock.withLock": (leaseTime) => Lock.withLock(Effect.void, "a", { leaseTime }),
  "Lock.withLockIfAvailable": (leaseTime) => Lock.withLockIfAvailable(Effect.void, "a", { leaseTime }),
  "PermitSemaphore.scoped": (leaseTime) => Effect.scoped(PermitSemaphore.scoped("a", { leaseTime })),
  "PermitSemaphore.tryScoped": (leaseTime) => Effect.scoped(PermitSemaphore.tryScoped("a", { leaseTime })),
  "PermitSemaphore.withPermits": (leaseTime) => PermitSemaphore.withPermits(Effect.void, "a", 1, { leaseTime }),
  "PermitSemaphore.withPermit": (leaseTime) => PermitSemaphore.withPermit(Effect.void, "a", { leaseTime }),
  "PermitSemaphore.withPermitIfAvailable": (leaseTime) =>
    PermitSemaphore.withPermitIfAvailable(Effect.void, "a", { leaseTime }),
  "RedisLock.layerFromStore, watchdogLeaseTime": (watchdogLeaseTime) =>
    Layer.build(Layer.provide(RedisLock.layerFromStore({ watchdogLeaseTime }), counting)),
  ...Object.fromEntries(
    Object.entries(locks).map(([title, make]): [string, Take] => [
      title,
      (leaseTime) => Lock.withLock(Effect.void, make("a", { leaseTime }))
    ])
  )
}

const periods: Record<string, Take> = {
  "Semaphore.trySetPermits, timeToLive": (timeToLive) => Semaphore.trySetPermits("a", 1, { timeToLive }),
  "RedisLock.layerFromStore, fallbackInterval": (fallbackInterval) =>
    Layer.build(Layer.provide(RedisLock.layerFromStore({ fallbackInterval }), counting)),
  "RedisLock.layerFromStore, releaseTimeout": (releaseTimeout) =>
    Layer.build(Layer.provide(RedisLock.layerFromStore({ releaseTimeout }), counting))
}

/** Periods of at most a day. */
const timeouts: Record<string, Take> = {
  "RedLock.make, memberTimeout": (memberTimeout) =>
    Lock.withLock(Effect.void, RedLock.make([Lock.make("a")], { memberTimeout })),
  "RedLock.make, retryDelay": (retryDelay) =>
    Lock.withLock(Effect.void, RedLock.make([Lock.make("a")], { retryDelay })),
  "RedisLock.layerQuorum, memberTimeout": (memberTimeout) =>
    Layer.build(RedisLock.layerQuorum([service], { memberTimeout })),
  "RedisLock.layerQuorum, retryDelay": (retryDelay) => Layer.build(RedisLock.layerQuorum([service], { retryDelay })),
  "IoRedis.layer, commandTimeout": (commandTimeout) =>
    Layer.build(IoRedis.layer({ url: "redis://127.0.0.1:1", commandTimeout })),
  "IoRedis.layer, connectTimeout": (connectTimeout) =>
    Layer.build(IoRedis.layer({ url: "redis://127.0.0.1:1", connectTimeout }))
}

/** Undefined, and in most places null, is an option that is left out. */
const given = (values: ReadonlyArray<unknown>) => values.filter((value) => value !== null)

const others: Record<string, readonly [take: Take, bad: ReadonlyArray<unknown>]> = {
  "SpinLock.make, schedule": [
    (schedule) => Lock.withLock(Effect.void, SpinLock.make("a", { schedule })),
    [5, "1 second", {}]
  ],
  "ReadWriteLock.make, preference": [
    (preference) => Lock.withLock(Effect.void, ReadWriteLock.make("a", { preference }).writeLock),
    ["writers", 1, {}]
  ],
  "RedisLock.layerFromStore, keyPrefix": [
    (keyPrefix) => Layer.build(Layer.provide(RedisLock.layerFromStore({ keyPrefix }), counting)),
    [5, {}, "a\0", "\ud800", "x".repeat(1025), Symbol("app")]
  ],
  "MultiLock.make, members": [(members) => Lock.withLock(Effect.void, MultiLock.make(members)), [null, 5, {}, []]],
  "RedLock.make, members": [(members) => Lock.withLock(Effect.void, RedLock.make(members)), [null, 5, {}, []]],
  "RedisLock.layerQuorum, members": [(members) => Layer.build(RedisLock.layerQuorum(members)), [null, 5, {}, []]],
  "Lock.provide, service": [
    (junk) => Lock.withLock(Effect.void, Lock.provide(Lock.make("a"), junk)),
    [undefined, null, 5, {}, "redis://a", circular]
  ],
  "Semaphore.provide, service": [
    (junk) => Semaphore.acquire(Semaphore.provide(Semaphore.make("a"), junk)),
    [null, 5, {}]
  ],
  "PermitSemaphore.provide, service": [
    (junk) => PermitSemaphore.totalPermits(PermitSemaphore.provide(PermitSemaphore.make("a"), junk)),
    [null, 5, {}]
  ],
  "CountDownLatch.provide, service": [
    (junk) => CountDownLatch.count(CountDownLatch.provide(CountDownLatch.make("a"), junk)),
    [null, 5, {}]
  ],
  "Semaphore.make, permits": [
    (permits) => Semaphore.acquire(Semaphore.make("a", { permits })),
    [0, -1, 1.5, Number.NaN, "5", {}, circular, 2 ** 31, Object.create(null)]
  ],
  "Semaphore.withPermits, permits": [
    (permits) => Semaphore.withPermits(Effect.void, "a", permits),
    [-1, 1.5, Number.NaN, 2 ** 31, "5", {}, null, Object.create(null)]
  ],
  "Semaphore.addPermits, permits": [(permits) => Semaphore.addPermits("a", permits), [0.5, Number.NaN, 2 ** 31, "5"]],
  "PermitSemaphore.make, permits": [
    (permits) => PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make("a", { permits })),
    [0, -1, 1.5, Number.NaN, 2 ** 31, "5", {}, Object.create(null)]
  ],
  "PermitSemaphore.addPermits, permits": [
    (permits) => PermitSemaphore.addPermits("a", permits),
    [0.5, Number.NaN, 2 ** 31, "5"]
  ],
  "PermitSemaphore.withPermits, permits": [
    (permits) => PermitSemaphore.withPermits(Effect.void, "a", permits),
    [0, -1, 1.5, "5", 10_001, {}, null, Object.create(null)]
  ],
  "PermitId.tryRelease, ids": [
    (ids) => PermitId.tryRelease("a", ids),
    [null, 5, "x", [5], [circular], ["x"], [null], [Object.create(null)]]
  ],
  "PermitId.leaseTime, id": [(id) => PermitId.leaseTime("a", id), [null, 5, {}, "x", circular, Symbol("id")]],
  "PermitId.updateLeaseTime, leaseTime": [
    (leaseTime) => PermitId.updateLeaseTime("a", id, leaseTime),
    [0, -1, Number.NaN, {}, new Date(), circular]
  ],
  "CountDownLatch.trySetCount, count": [
    (count) => CountDownLatch.trySetCount("a", count),
    [0, -1, 1.5, Number.NaN, 2 ** 53, "5", {}, null, Object.create(null)]
  ]
}

const table = (
  title: string,
  tag: "InvalidLockName" | "InvalidLockOptions",
  takes: Record<string, Take>,
  values: ReadonlyArray<unknown>,
  of: (name: string) => RegExp
) => {
  for (const [name, take] of Object.entries(takes)) {
    it.live(`Invalid input is refused before any command: ${title} of ${name}`, () =>
      Effect.gen(function* () {
        for (const value of values) {
          const message = yield* refuses(tag, () => take(value))
          assert.isBelow(message.length, 300)
          assert.match(message, of(name))
        }
      }).pipe(Effect.scoped, Effect.provide(service))
    )
  }
}

table("a bad name", "InvalidLockName", byName, badNames, () => /cannot name/)
table("a bad waitTime", "InvalidLockOptions", waits, given(badDurations), () => /^waitTime: /)
table("a bad leaseTime", "InvalidLockOptions", leases, given(badLeases), () => /^(?:watchdogL|l)easeTime: /)
/** The option stands behind the function. */
const named = (name: string) => new RegExp(name.match(/, (\w+)/)![1]!)
table("a bad period", "InvalidLockOptions", periods, given(badPeriods), named)
table("a bad timeout", "InvalidLockOptions", timeouts, [...given(badPeriods), "25 hours", "13 days"], named)
for (const [name, [take, values]] of Object.entries(others)) {
  table("a bad value", "InvalidLockOptions", { [name]: take }, values, named)
}

it.live("Holding.renew refuses a bad lease", () =>
  Effect.gen(function* () {
    const holding = yield* Lock.scoped("renewed")
    for (const leaseTime of given(badLeases)) {
      yield* refuses("InvalidLockOptions", () => holding.renew(forced<number>(leaseTime)))
    }
  }).pipe(Effect.scoped, Effect.provide(service))
)

test("A missing options object counts as no options", function* () {
  const none = forced<undefined>(null)
  for (const make of Object.values(locks)) yield* Lock.withLock(Effect.void, make("a", none), none)
  yield* Lock.withLock(Effect.void, RedLock.make([Lock.make("a")], none))
  yield* PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make("p", { permits: 1 }), none)
  yield* Effect.scoped(Layer.build(Layer.provide(RedisLock.layerFromStore(none), counting)))
})

test("The shortest lease that exceeds the drift can be granted", function* () {
  yield* Effect.scoped(Lock.scoped("a", { leaseTime: 3 }))
  const message = yield* refuses("InvalidLockOptions", () => Effect.scoped(Lock.scoped("a", { leaseTime: 2 })))
  assert.include(message, "leaseTime: 2 ms are too short")
})

test("A quorum refuses a lease that is not longer than the drift", function* () {
  const lock = RedLock.make([Lock.make("a")])
  yield* Effect.scoped(Lock.scoped(lock, { leaseTime: 3 }))
  yield* refuses("InvalidLockOptions", () => Effect.scoped(Lock.scoped(lock, { leaseTime: 2 })))
})

test("An object is a duration only if it has the parts of one", function* () {
  for (const waitTime of [{ seconds: 1 }, { days: 0 }, [1, 0] as const, 10n]) {
    yield* Lock.withLock(Effect.void, "a", { waitTime })
  }
})

it.live("A schedule without pauses does not keep the server busy", () =>
  Effect.gen(function* () {
    const lock = SpinLock.make("spun", { schedule: Schedule.forever })
    yield* Lock.scoped(Lock.make("spun"))
    const before = commands.count
    yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: "50 millis" }).pipe(Lock.withOwner))
    assert.isBelow(commands.count - before, 60)
  }).pipe(Effect.scoped, Effect.provide(service))
)
