/**
 * A `fallbackInterval` is how long a waiter relies on messages. What it has in Redis meanwhile, a place, counts for a shorter time, and
 * what has failed is asked again sooner.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Schedule, Schema, Stream } from "effect"
import {
  LeaderElection,
  Lock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  RunOnce,
  Semaphore
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { placesIn } from "../kit/storeOperations.ts"
import { as, storeWith, type Service } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

test("Readers that come later do not enter before a writer whose fallbackInterval is long, though others read all the time", function* () {
  const options = { fallbackInterval: "20 seconds", label: "" } as const
  const [, some, others, writer] = yield* storeWith(options, options, options)
  // each begins before the one of the other process has ended
  const readAllTheTime = (client: Service) =>
    Effect.sleep("8 seconds").pipe(
      Lock.withLock(readLock),
      as(client),
      Effect.repeat(Schedule.spaced("200 millis")),
      background
    )
  const readers = [yield* readAllTheTime(some)]
  yield* TestClock.adjust("1 second")
  const writing = yield* background(as(writer)(Lock.withLock(Effect.void, writeLock)))
  yield* TestClock.adjust("1 second")
  readers.push(yield* readAllTheTime(others))
  yield* TestClock.adjust("7 seconds")
  assert.deepStrictEqual<unknown>(writing.pollUnsafe(), Exit.void)
  yield* Fiber.interruptAll(readers)
})

type Wait = (section: Effect.Effect<void>) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>

const lockPlaces = "effect_redis_lock_places:{a}"
const permitPlaces = "effect_redis_lock_permit_places:{a}"

const waiters: ReadonlyArray<readonly [what: string, places: string, wait: Wait]> = [
  ["a lock", lockPlaces, Lock.withLock("a")],
  ["a readLock", lockPlaces, Lock.withLock(readLock)],
  ["a writeLock", lockPlaces, Lock.withLock(writeLock)],
  ["permits of a Semaphore", permitPlaces, Semaphore.withPermits(Semaphore.make("a", { permits: 1 }), 1)],
  [
    "permits of a PermitSemaphore",
    permitPlaces,
    PermitSemaphore.withPermits(PermitSemaphore.make("a", { permits: 1 }), 1)
  ]
]

for (const [what, places, wait] of waiters) {
  test(`The place of a process that waits for ${what} lasts as long as it waits, however long its fallbackInterval is`, function* () {
    // so is the lease that it is told of, at whose end it asks
    const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 hour", label: "" } as const
    const [server, holder, waiter] = yield* storeWith(patient, patient)
    const hold = what === "a readLock" ? Lock.withLock(Effect.never, writeLock) : wait(Effect.never)
    const holding = yield* background(as(holder)(hold))
    yield* TestClock.adjust(10)
    const waiting = yield* background(as(waiter)(wait(Effect.void)))
    yield* TestClock.adjust("2 minutes")
    assert.lengthOf(
      (yield* placesIn(server.store, places)).filter((place) => !String(place).endsWith(":asked")),
      1
    )
    yield* Fiber.interrupt(holding)
    yield* TestClock.adjust(10)
    assert.isTrue(Exit.isSuccess(waiting.pollUnsafe()!))
  })
}

const isRead = (operation: string) => operation === "record/read"

test("A caller of work that is done once goes on soon after its look for the result has failed, however long the fallbackInterval is", function* () {
  const [server, client] = yield* storeWith({ fallbackInterval: "1 hour" })
  const once = RunOnce.make("a", { timeToLive: "1 hour", result: Schema.Number })
  server.refuses = isRead
  const running = yield* background(as(client)(RunOnce.run(Effect.succeed(1), once)))
  yield* TestClock.adjust(10)
  server.refuses = () => false
  yield* TestClock.adjust("10 seconds")
  assert.deepStrictEqual<unknown>(running.pollUnsafe(), Exit.succeed(1))
})

test("Who follows an election sees soon after a failure of Redis who leads, however long the fallbackInterval is", function* () {
  const options = { fallbackInterval: "1 hour" } as const
  const [server, follower, leader] = yield* storeWith(options, options)
  const election = LeaderElection.make("a")
  const seen: Array<boolean> = []
  yield* LeaderElection.changes(election).pipe(
    Stream.runForEach((leader) => Effect.sync(() => void seen.push(Option.isSome(leader)))),
    as(follower),
    background
  )
  yield* TestClock.adjust(10)
  server.refuses = isRead
  const leading = yield* background(as(leader)(LeaderElection.whileLeader(Effect.never, election)))
  yield* TestClock.adjust(10)
  assert.deepStrictEqual(seen, [false])
  server.refuses = () => false
  yield* TestClock.adjust("10 seconds")
  assert.deepStrictEqual(seen, [false, true])
  yield* Fiber.interrupt(leading)
})
