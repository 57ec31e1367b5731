/**
 * A lock that is handed over is held by nobody until its next owner has asked, however long the message lies somewhere; and an owner that
 * cannot ask keeps the others waiting for a short time only.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Stream } from "effect"
import { FencedLock, Lock, type RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, type TestStore, testStore } from "../kit/testStore.ts"

// nobody asks by the clock unless a test says so
const patient = { fallbackInterval: "1 hour", label: "" } as const

/** A store whose messages lie for `delay` milliseconds before a client hears them; subscriptions are ready at once. */
const lying = (server: TestStore, delay: () => number) => ({
  ...server.store,
  subscribe: (channel: string) =>
    Stream.tap(server.store.subscribe(channel), ({ _tag }) =>
      _tag === "Message" ? Effect.sleep(delay()) : Effect.void
    )
})

/** Notes who is inside, and that nobody else is. */
const makeSections = () => {
  const entered: Array<string> = []
  let inside: string | undefined
  const section = (who: string, millis: number) =>
    Effect.gen(function* () {
      assert.isUndefined(inside, `${who} is let in`)
      inside = who
      entered.push(who)
      yield* Effect.sleep(millis)
    }).pipe(Effect.ensuring(Effect.sync(() => (inside = undefined))))
  return { entered, section }
}

/** A test with a holder that leaves after a second, and somebody who waits and whose messages lie. */
const whileMessagesLie = Effect.fnUntraced(function* (
  delay: () => number,
  options: { readonly lock?: Lock.Lock<RedisLock.RedisLock, any>; readonly service?: RedisLock.RedisLockOptions } = {}
) {
  const { lock = Lock.make("a"), service = patient } = options
  const server = yield* testStore()
  const holder = yield* clientOf(server, patient)
  const waiter = yield* clientOf({ store: lying(server, delay) }, service)
  const { entered, section } = makeSections()
  yield* section("holder", 1000).pipe(Lock.withLock(lock), as(holder), Effect.forkChild({ startImmediately: true }))
  yield* TestClock.adjust(1)
  const waiting = yield* section("waiter", 1000).pipe(
    Lock.withLock(lock),
    as(waiter),
    Effect.forkChild({ startImmediately: true })
  )
  yield* TestClock.adjust(10)
  return { entered, holder, lock, section, server, waiting }
})

describe("a lock that is handed over", () => {
  it.effect("A waiter that is told asks once, and its section has the lease that it asked for", () =>
    Effect.gen(function* () {
      const { entered, holder, lock, server, waiting } = yield* whileMessagesLie(() => 0)
      server.operations.length = 0
      yield* TestClock.adjust(1001)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      assert.deepStrictEqual(server.operations, ["lock/release", "lock/acquire"])
      // a section that blocks the event loop from now on can send no renewal
      const left = yield* Lock.remainingTime(lock).pipe(as(holder))
      assert.isAbove(left._tag === "Some" ? Duration.toMillis(left.value) : 0, 29_000)
      server.operations.length = 0
      yield* TestClock.adjust(900)
      assert.deepStrictEqual(server.operations, [])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
    }).pipe(Effect.scoped)
  )

  it.effect("A message that lies for longer than the lease lets nobody in while somebody else holds the lock", () =>
    Effect.gen(function* () {
      let lies = 3000
      const { entered, holder, lock, section, waiting } = yield* whileMessagesLie(() => lies)
      // until a second after the grant the lock is kept for the waiter
      yield* TestClock.adjust(1001)
      assert.isTrue((yield* Lock.withLockIfAvailable(lock)(Effect.void).pipe(as(holder)))._tag === "None")
      yield* TestClock.adjust(2000)
      const other = yield* section("other", 5000).pipe(
        Lock.withLock(lock, { waitTime: 0 }),
        as(holder),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust(4000)
      assert.deepStrictEqual(entered, ["holder", "other"])
      lies = 0
      yield* TestClock.adjust(3000)
      yield* Fiber.join(other)
      assert.deepStrictEqual(entered, ["holder", "other", "waiter"])
      yield* TestClock.adjust(5000)
      yield* Fiber.join(waiting)
    }).pipe(Effect.scoped)
  )

  it.effect("Nobody is let in before the owner that a lock is kept for, as long as it is kept", () =>
    Effect.gen(function* () {
      const { entered, holder, lock, waiting } = yield* whileMessagesLie(() => 1900)
      yield* TestClock.adjust(2800)
      assert.isTrue((yield* Lock.withLockIfAvailable(lock)(Effect.void).pipe(as(holder)))._tag === "None")
      assert.deepStrictEqual(entered, ["holder"])
      yield* TestClock.adjust(200)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
    }).pipe(Effect.scoped)
  )

  it.effect("A waiter whose message never arrives finds that the lock is its own when it asks", () =>
    Effect.gen(function* () {
      const { entered, waiting } = yield* whileMessagesLie(() => 3_600_000, {
        service: { fallbackInterval: "1 second" }
      })
      yield* TestClock.adjust(3000)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
    }).pipe(Effect.scoped)
  )

  it.effect("A lock with a fixed lease that was handed over has that lease, not the short one, in Redis as well", () =>
    Effect.gen(function* () {
      const server = yield* testStore()
      const [one, two] = [yield* clientOf(server, patient), yield* clientOf(server, patient)]
      for (const leaseTime of [500, 60_000]) {
        yield* Effect.sleep(100).pipe(Lock.withLock("a"), as(one), Effect.forkChild({ startImmediately: true }))
        const waiting = yield* Effect.flatMap(Lock.remainingTime("a"), (left) =>
          Effect.as(Effect.sleep(1), left._tag === "Some" ? left.value : undefined)
        ).pipe(Lock.withLock("a", { leaseTime }), as(two), Effect.forkChild({ startImmediately: true }))
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(String(yield* Fiber.join(waiting)), leaseTime === 500 ? "500 millis" : "60000 millis")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("Fibers of one client that want locks of different kinds under one name get tokens of their kinds", () =>
    Effect.gen(function* () {
      const server = yield* testStore()
      const [one, two] = [yield* clientOf(server, patient), yield* clientOf(server, patient)]
      const tokens: Array<bigint> = []
      const note = <E>(lock: Lock.Lock<RedisLock.RedisLock, E>) =>
        Effect.flatMap(Lock.currentHolding(lock), ({ token }) => Effect.sync(() => tokens.push(token as bigint))).pipe(
          Effect.andThen(Effect.sleep(10)),
          Lock.withLock(lock),
          as(two),
          Effect.forkChild({ startImmediately: true })
        )
      const fenced = FencedLock.make("a")
      yield* Effect.sleep(100).pipe(Lock.withLock(fenced), as(one), Effect.forkChild({ startImmediately: true }))
      yield* TestClock.adjust(1)
      const fibers = [yield* note(fenced), yield* note(Lock.make("a")), yield* note(fenced)]
      yield* TestClock.adjust(1000)
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(tokens, [2n, 3n, 4n])
    }).pipe(Effect.scoped)
  )

  it.effect("The last waiter of a client that gives up leaves its turn to the next client", () =>
    Effect.gen(function* () {
      const { entered, lock, section, server, waiting } = yield* whileMessagesLie(() => 100)
      const third = yield* clientOf(server, patient)
      const last = yield* section("third", 10).pipe(
        Lock.withLock(lock),
        as(third),
        Effect.forkChild({ startImmediately: true })
      )
      // the lock is its own already, but it does not know yet
      yield* TestClock.adjust(1001)
      yield* Fiber.interrupt(waiting)
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(entered, ["holder", "third"])
      yield* Fiber.join(last)
      assert.isTrue(yield* server.isFree("a"))
    }).pipe(Effect.scoped)
  )

  it.effect("A lock that a release has left to its own client is handed on when nobody there wants it any more", () =>
    Effect.gen(function* () {
      const server = yield* testStore()
      const [one, two] = [yield* clientOf(server, patient), yield* clientOf(server, patient)]
      const { entered, section } = makeSections()
      const enter = (who: string, millis: number, service: typeof one) =>
        section(who, millis).pipe(Lock.withLock("a"), as(service), Effect.forkChild({ startImmediately: true }))
      yield* enter("first", 1000, one)
      const second = yield* enter("second", 1000, one)
      const other = yield* enter("other", 10, two)
      yield* TestClock.adjust(100)
      // while it asks for what the release has left to it
      server.delay = (operation) => (operation === "lock/acquire" ? 10_000 : 0)
      yield* TestClock.adjust(901)
      yield* Fiber.interrupt(second)
      server.delay = () => 0
      yield* TestClock.adjust(100)
      yield* Fiber.join(other)
      assert.deepStrictEqual(entered, ["first", "other"])
    }).pipe(Effect.scoped)
  )
})
