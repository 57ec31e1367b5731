/**
 * What a client does when its store tells it of changes, at awkward moments.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Queue, Stream } from "effect"
import {
  Lock,
  LockStoreError,
  type LockStore,
  PermitSemaphore,
  ReadWriteLock,
  type RedisDriver,
  RedisLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientLayer, clientOf, type Service, serviceOf, storeWith, testStore } from "../kit/testStore.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { unreachable, wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const hour = { watchdogLeaseTime: "1 hour" } as const

/** A store in memory that tells what the test has it tell, and a client of it. */
const site = Effect.fnUntraced(function* (options: RedisLock.RedisLockOptions = hour) {
  const server = yield* testStore()
  const told = yield* Queue.unbounded<RedisDriver.Signal, LockStoreError>()
  const begin = Queue.offer(told, { _tag: "Subscribed" })
  const self = Object.assign(server, {
    told,
    begin,
    /** It begins once what is held is a second old, and watches that from then on. */
    watched: Effect.all([TestClock.adjust("1 second"), begin, TestClock.adjust("2 seconds")], { discard: true }),
    tell: (message: string) => Queue.offer(told, { _tag: "Message", message }),
    count: (operation: LockStore.Operation) => server.operations.filter((name) => name === operation).length,
    /** What happens just before the store watches keys. */
    beforeTracking: Effect.void,
    /** The keys that it was last asked to watch. */
    tracked: [] as ReadonlyArray<string>
  })
  const store = wrappedStore(server.store, ({ keys, operation, run }) => {
    if (operation !== "client/track") return run()
    self.tracked = keys
    return Effect.andThen(self.beforeTracking, run())
  })
  const client = yield* clientOf({ store: { ...store, invalidations: Stream.fromQueue(told) } }, options)
  return Object.assign(self, { client })
})

const hold = (client: Service, lock: Lock.Lock | string = "a") =>
  Effect.never.pipe(Lock.withLock(lock), as(client), background)

const isLost = (section: Fiber.Fiber<unknown, unknown>) => {
  const exit = section.pollUnsafe()
  const error = exit === undefined ? Option.none() : Exit.findErrorOption(exit)
  return Option.isSome(error) && (error.value as { readonly reason?: string }).reason === "NotOwner"
}

test("A lock that is deleted between its renewal and the command behind it is lost at once", function* () {
  const it = yield* site({ watchdogLeaseTime: "30 seconds" })
  const section = yield* hold(it.client)
  yield* TestClock.adjust("1 second")
  yield* it.begin
  yield* TestClock.adjust("8 seconds")
  assert.strictEqual(it.count("client/track"), 1)
  it.beforeTracking = it.delete("a")
  yield* TestClock.adjust("1 second")
  assert.strictEqual(it.count("client/track"), 2)
  assert.isTrue(isLost(section))
})

test("A renewal is followed by one command, and verifies nothing", function* () {
  const it = yield* site({ watchdogLeaseTime: "30 seconds" })
  yield* hold(it.client)
  yield* TestClock.adjust("1 second")
  yield* it.begin
  yield* TestClock.adjust("8 seconds")
  it.operations.length = 0
  yield* TestClock.adjust("40 seconds")
  assert.deepStrictEqual(
    it.operations.filter((name) => name === "lock/renew" || name === "client/track"),
    Array.from({ length: 4 }, () => ["lock/renew", "client/track"] as const).flat()
  )
})

test("A lock that the store could not be asked to watch is verified, and watched, a second later", function* () {
  const it = yield* site()
  it.refuses = (operation) => operation === "client/track"
  const section = yield* hold(it.client)
  yield* TestClock.adjust("1 second")
  yield* it.begin
  yield* TestClock.adjust("500 millis")
  yield* it.delete("a")
  it.refuses = () => false
  assert.strictEqual(it.count("client/track"), 0)
  yield* TestClock.adjust("1 second")
  assert.strictEqual(it.count("client/track"), 1)
  assert.isTrue(isLost(section))
})

test("A lock is watched again after a re-entry, and still after the end of that", function* () {
  const it = yield* site()
  const body = Effect.andThen(Effect.sleep("3 seconds"), Lock.withLock(Effect.sleep("3 seconds"), "a"))
  yield* Lock.withLock(Effect.andThen(body, Effect.never), "a").pipe(as(it.client), background)
  yield* it.watched
  assert.strictEqual(it.count("client/track"), 1)
  yield* TestClock.adjust("2 seconds")
  assert.strictEqual(it.count("client/track"), 2)
  yield* TestClock.adjust("1 minute")
  assert.strictEqual(it.count("client/track"), 2)
})

test("A reader that renews its lease has the others of its process verified, which are no longer told of a loss", function* () {
  expectWarning(/^The lock's scope has closed, but its release went wrong\./)
  const it = yield* site()
  const { readLock } = ReadWriteLock.make("a")
  const other = yield* hold(it.client, readLock)
  const holding = yield* Lock.scoped(readLock).pipe(as(it.client))
  yield* it.watched
  yield* holding.renew()
  const keys = ["a", "silent:a", "stem:a", "notes:a"]
  yield* Effect.orDie(runOperation(it.store, "read_lock/force_release", keys, ["PUBLISH"]))
  yield* TestClock.adjust("1 second")
  assert.isTrue(isLost(other))
})

test("A reader is verified after a request of its process that was denied, as that may have written its key", function* () {
  const it = yield* site()
  const { readLock, writeLock } = ReadWriteLock.make("a")
  const section = yield* hold(it.client, readLock)
  yield* it.watched
  it.operations.length = 0
  yield* TestClock.adjust("2 seconds")
  assert.strictEqual(it.count("read_lock/renew"), 0)
  assert.isTrue(Option.isNone(yield* Lock.tryScoped(writeLock).pipe(as(it.client))))
  yield* TestClock.adjust("1 second")
  assert.strictEqual(it.count("read_lock/renew"), 1)
  assert.isFalse(isLost(section))
})

test("A reader whose key has changed is watched before it is verified, and again behind what may have extended it", function* () {
  const it = yield* site()
  yield* hold(it.client, ReadWriteLock.make("a").readLock)
  yield* it.watched
  it.operations.length = 0
  yield* it.tell("a")
  yield* TestClock.adjust("2 seconds")
  assert.deepStrictEqual(it.operations, ["client/track", "read_lock/renew", "client/track"])
})

test("The key that several readers share is watched once", function* () {
  const it = yield* site()
  const section = yield* hold(it.client, ReadWriteLock.make("a").readLock)
  yield* hold(it.client, ReadWriteLock.make("a").readLock)
  yield* hold(it.client, ReadWriteLock.make("b").readLock)
  yield* it.watched
  assert.sameMembers([...it.tracked], ["a", "b"])
  it.operations.length = 0
  yield* Fiber.interrupt(section)
  yield* TestClock.adjust("2 seconds")
  assert.deepStrictEqual(it.operations.slice(1), ["client/track", "read_lock/renew", "client/track"])
})

test("Readers with fixed leases of different lengths are verified together, each up to its own end", function* () {
  const it = yield* site()
  const { readLock } = ReadWriteLock.make("a")
  const leases = ["1 hour", "10 minutes", "30 minutes"] as const
  yield* Effect.forEach(leases, (leaseTime) =>
    Effect.never.pipe(Lock.withLock(readLock, { leaseTime }), as(it.client), background)
  )
  yield* it.watched
  it.operations.length = 0
  yield* it.tell("a")
  yield* TestClock.adjust("2 seconds")
  assert.deepStrictEqual(it.operations, ["client/track", "read_lock/renew", "client/track"])
})

test("A key that changes all the time is verified at most every 50 ms", function* () {
  const it = yield* site()
  yield* hold(it.client, ReadWriteLock.make("a").readLock)
  yield* it.watched
  it.operations.length = 0
  for (let i = 0; i < 1000; i++) {
    yield* it.tell("a")
    yield* TestClock.adjust(1)
  }
  const count = it.count("read_lock/renew")
  assert.isAtLeast(count, 19)
  assert.isAtMost(count, 21)
})

test("Keys of many readers that change all the time are verified the more rarely, the more readers there are", function* () {
  const it = yield* site()
  const names = Array.from({ length: 1000 }, (_, i) => `a:${i}`)
  for (const name of names) yield* hold(it.client, ReadWriteLock.make(name).readLock)
  yield* it.watched
  it.operations.length = 0
  for (let i = 0; i < 20; i++) {
    for (const name of names) yield* it.tell(name)
    yield* TestClock.adjust(50)
  }
  // twice for each verification
  const count = it.count("client/track")
  assert.isAtLeast(count, 6)
  assert.isAtMost(count, 12)
})

test("A lock is watched once it is a second old", function* () {
  const it = yield* site()
  yield* hold(it.client, "a")
  yield* TestClock.adjust("1 second")
  yield* it.begin
  yield* TestClock.adjust("500 millis")
  yield* hold(it.client, "b")
  yield* TestClock.adjust("900 millis")
  yield* it.tell("b")
  yield* TestClock.adjust("50 millis")
  assert.strictEqual(it.count("client/track"), 1)
  yield* TestClock.adjust("1 second")
  assert.strictEqual(it.count("client/track"), 2)
})

/** How many permits a renewal looked at. */
const permitsIn = (args: ReadonlyArray<string | number>) =>
  args.filter((_, i) => i % 2 === 1).reduce<number>((sum, ids) => sum + String(ids).split(",").length, 0)

test("Permits whose semaphore changes all the time are verified at most 4000 a second, also if a few holds have them", function* () {
  const it = yield* site()
  const semaphore = PermitSemaphore.make("a", { permits: 400 })
  for (let i = 0; i < 4; i++)
    yield* PermitSemaphore.withPermits(Effect.never, semaphore, 100).pipe(as(it.client), background)
  yield* it.watched
  it.operations.length = it.args.length = 0
  for (let i = 0; i < 100; i++) {
    yield* it.tell("{a}:timeout")
    yield* TestClock.adjust(10)
  }
  const verified = it.args.filter((_, i) => it.operations[i] === "permit_semaphore/renew").map(permitsIn)
  assert.isAbove(verified.length, 0)
  assert.isAtMost(
    verified.reduce((a, b) => a + b),
    4000 + 400
  )
})

test("A renewal is of 200 permits at most, but for those of one hold", function* () {
  const [server, client] = yield* storeWith({ watchdogLeaseTime: "30 seconds" })
  for (const permits of [90, 90, 90, 250, 10])
    yield* PermitSemaphore.withPermits(Effect.never, PermitSemaphore.make("a", { permits: 1000 }), permits).pipe(
      as(client),
      background
    )
  yield* TestClock.adjust("10 seconds")
  const renewed = server.args.filter((_, i) => server.operations[i] === "permit_semaphore/renew").map(permitsIn)
  assert.strictEqual(
    renewed.reduce((a, b) => a + b),
    530
  )
  assert.deepStrictEqual(
    renewed.filter((permits) => permits > 200),
    [250]
  )
})

test("Nothing is sent for a lock of another name, nor once the lock is free", function* () {
  const it = yield* site()
  const section = yield* hold(it.client)
  yield* it.watched
  it.operations.length = 0
  yield* it.tell("b")
  yield* TestClock.adjust("2 seconds")
  yield* Fiber.interrupt(section)
  yield* it.tell("a")
  yield* TestClock.adjust("2 seconds")
  assert.notInclude(it.operations, "lock/renew")
  assert.notInclude(it.operations, "client/track")
})

test("Nothing is sent to a store that refuses to tell, or that has not begun", function* () {
  const it = yield* site()
  yield* hold(it.client)
  yield* TestClock.adjust("5 seconds")
  yield* Queue.fail(
    it.told,
    new LockStoreError({ operation: "tracking", lock: "", reason: "NoPermission", cause: undefined })
  )
  yield* TestClock.adjust("5 seconds")
  assert.notInclude(it.operations, "lock/renew")
  assert.notInclude(it.operations, "client/track")
})

test("All locks are verified when the store begins to tell again", function* () {
  const it = yield* site()
  const sections = yield* Effect.forEach(["a", "b"], (name) => hold(it.client, name))
  yield* it.watched
  yield* it.delete("b")
  yield* TestClock.adjust("2 seconds")
  assert.deepStrictEqual(sections.map(isLost), [false, false])
  yield* it.begin
  yield* TestClock.adjust("0 seconds")
  assert.deepStrictEqual(sections.map(isLost), [false, true])
})

test("A quorum is told of a loss also by a member that could not be reached at first", function* () {
  expectWarning(/^One server of the quorum cannot be reached yet/)
  const member = Effect.gen(function* () {
    const server = yield* testStore()
    const told = yield* Queue.unbounded<RedisDriver.Signal, LockStoreError>()
    let timesAsked = 0
    const invalidations = Stream.suspend(() => {
      timesAsked++
      return Stream.fromQueue(told)
    })
    return {
      timesAsked: () => timesAsked,
      begin: Queue.offer(told, { _tag: "Subscribed" }),
      lose: Effect.andThen(server.delete("a"), Queue.offer(told, { _tag: "Message", message: "a" })),
      layer: clientLayer({ ...server.store, invalidations }, hour)
    }
  })
  const [one, two, three] = [yield* member, yield* member, yield* member]
  let isUp = false
  const late = Layer.unwrap(
    Effect.suspend(() => (isUp ? Effect.succeed(three.layer) : Effect.fail(unreachable("connect", "server 3"))))
  )
  const client = yield* serviceOf(RedisLock.layerQuorum([one.layer, two.layer, late]))
  // its members are asked to tell from its first lock on
  yield* hold(client, "b")
  yield* TestClock.adjust("1 second")
  for (const member of [one, two]) yield* member.begin
  yield* TestClock.adjust("1 minute")
  isUp = true
  yield* TestClock.adjust("1 minute")
  yield* three.begin
  const section = yield* hold(client, "a")
  yield* TestClock.adjust("3 seconds")
  yield* one.lose
  yield* TestClock.adjust("1 second")
  assert.isFalse(isLost(section), "a majority still has it")
  yield* three.lose
  yield* TestClock.adjust("1 second")
  assert.isTrue(isLost(section))
  assert.strictEqual(one.timesAsked(), 1, "a member that is away does not disturb the others")
})
