/**
 * A lock that is handed over is held by nobody until its next owner has asked, however long the message lies somewhere; and an owner that
 * cannot ask keeps the others waiting for a short time only.
 */
import { failure } from "../kit/exits.ts"
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Queue, Schedule, Stream } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  ReadWriteLock,
  type RedisDriver,
  type RedisLock,
  SpinLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { as, clientOf, storeWith, testStore, type TestStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

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
  lock: Lock.Lock<RedisLock.RedisLock, any> = Lock.make("a")
) {
  const [server, holder] = yield* storeWith(patient)
  const waiter = yield* clientOf({ store: lying(server, delay) }, patient)
  const { entered, section } = makeSections()
  yield* section("holder", 1000).pipe(Lock.withLock(lock), as(holder), background)
  yield* TestClock.adjust(1)
  const waiting = yield* section("waiter", 1000).pipe(Lock.withLock(lock), as(waiter), background)
  yield* TestClock.adjust(10)
  return { entered, holder, lock, section, server, waiting }
})

describe("a lock that is handed over", () => {
  for (const [title, lock, release] of [
    ["A waiter", Lock.make("a"), "lock/release"],
    ["The head of a fair queue", FairLock.make("a"), "fair_lock/release"]
  ] as const) {
    test(`${title} that is told begins without asking, and its section has the lease that it asked for`, function* () {
      const { entered, holder, server, waiting } = yield* whileMessagesLie(() => 0, lock)
      server.operations.length = 0
      yield* TestClock.adjust(1001)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      const asked = server.operations.filter((operation) => operation !== "fair_lock/refresh")
      assert.deepStrictEqual(asked, [release, "lock/renew"])
      // a section that blocks the event loop from now on can send no renewal
      const left = yield* Lock.remainingTime(lock).pipe(as(holder))
      assert.isAbove(left._tag === "Some" ? Duration.toMillis(left.value) : 0, 29_000)
      server.operations.length = 0
      yield* TestClock.adjust(900)
      assert.deepStrictEqual(server.operations, [])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
    })
  }

  const { readLock, writeLock } = ReadWriteLock.make("a")
  for (const [title, lock, others] of [
    ["A waiter", Lock.make("a"), Lock.make("a")],
    ["A waiter of a fenced lock", FencedLock.make("a"), FencedLock.make("a")],
    ["A writer", writeLock, writeLock],
    ["A reader", readLock, writeLock]
  ] as const) {
    test(`${title} whose request is lost, and with it its place, is let in before those that came later`, function* () {
      const server = yield* testStore()
      let isLost = true
      const store = wrappedStore(server.store, (request) => {
        if (isLost || !request.operation.endsWith("/acquire")) return request.run()
        isLost = true
        return Effect.andThen(
          request.run(),
          Effect.suspend(() => request.fail("TimedOut"))
        )
      })
      const holder = yield* clientOf(server, patient)
      const first = yield* clientOf({ store }, { ...patient, fallbackInterval: "1 second" })
      const second = yield* clientOf(server, patient)
      const { entered, section } = makeSections()
      yield* background(section("holder", 10_000).pipe(Lock.withLock(others), as(holder)))
      yield* background(section("first", 1000).pipe(Lock.withLock(lock), as(first)))
      yield* TestClock.adjust(10)
      yield* background(section("second", 1000).pipe(Lock.withLock(others), as(second)))
      yield* TestClock.adjust(10)
      isLost = false
      yield* TestClock.adjust(5000)
      assert.isTrue(isLost)
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(entered, ["holder", "first", "second"])
    })
  }

  test("A lock that is handed over before the first request of a waiter is answered is not missed where its channel is heard already", function* () {
    const [server, holder] = yield* storeWith(patient)
    let replyMillis = 0
    const store = wrappedStore(server.store, ({ operation, run }) =>
      operation === "lock/acquire" ? Effect.tap(run(), () => Effect.sleep(replyMillis)) : run()
    )
    const waiter = yield* clientOf({ store }, patient)
    const wait = Effect.gen(function* () {
      yield* Lock.withLock(Effect.sleep(50), "a").pipe(as(holder), background)
      yield* TestClock.adjust(1)
      const waiting = yield* Lock.withLock(Effect.void, "a").pipe(as(waiter), background)
      yield* TestClock.adjust(500)
      assert.isDefined(waiting.pollUnsafe())
    })
    yield* wait
    replyMillis = 100
    yield* wait
  })

  test("Nobody is let in before the owner that a lock is kept for, as long as it is kept", function* () {
    const { entered, holder, lock, waiting } = yield* whileMessagesLie(() => 1900)
    yield* TestClock.adjust(2800)
    assert.isTrue((yield* Lock.withLockIfAvailable(lock)(Effect.void).pipe(as(holder)))._tag === "None")
    assert.deepStrictEqual(entered, ["holder"])
    yield* TestClock.adjust(200)
    assert.deepStrictEqual(entered, ["holder", "waiter"])
    yield* TestClock.adjust(1000)
    yield* Fiber.join(waiting)
  })

  test("A lock with a fixed lease that was handed over has that lease, not the short one, in Redis as well", function* () {
    const [, one, two] = yield* storeWith(patient, patient)
    for (const leaseTime of [500, 60_000]) {
      yield* Effect.sleep(100).pipe(Lock.withLock("a"), as(one), background)
      const waiting = yield* Effect.flatMap(Lock.remainingTime("a"), (left) =>
        Effect.as(Effect.sleep(1), left._tag === "Some" ? left.value : undefined)
      ).pipe(Lock.withLock("a", { leaseTime }), as(two), background)
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(String(yield* Fiber.join(waiting)), leaseTime === 500 ? "500 millis" : "60000 millis")
    }
  })

  test("Fibers of one client that want locks of different kinds under one name get tokens of their kinds", function* () {
    const [, one, two] = yield* storeWith(patient, patient)
    const tokens: Array<bigint> = []
    const note = <E>(lock: Lock.Lock<RedisLock.RedisLock, E>) =>
      Effect.flatMap(Lock.currentHolding(lock), ({ token }) => Effect.sync(() => tokens.push(token as bigint))).pipe(
        Effect.andThen(Effect.sleep(10)),
        Lock.withLock(lock),
        as(two),
        background
      )
    const fenced = FencedLock.make("a")
    yield* Effect.sleep(100).pipe(Lock.withLock(fenced), as(one), background)
    yield* TestClock.adjust(1)
    const fibers = [yield* note(fenced), yield* note(Lock.make("a")), yield* note(fenced)]
    yield* TestClock.adjust(1000)
    yield* Fiber.joinAll(fibers)
    assert.deepStrictEqual(tokens, [2n, 3n, 4n])
  })

  test("The last waiter of a client that gives up leaves its turn to the next client", function* () {
    const { entered, lock, section, server, waiting } = yield* whileMessagesLie(() => 100)
    const third = yield* clientOf(server, patient)
    const last = yield* section("third", 10).pipe(Lock.withLock(lock), as(third), background)
    // the lock is its own already, but it does not know yet
    yield* TestClock.adjust(1001)
    yield* Fiber.interrupt(waiting)
    yield* TestClock.adjust(50)
    assert.deepStrictEqual(entered, ["holder", "third"])
    yield* Fiber.join(last)
    assert.isTrue(yield* server.isFree("a"))
  })

  test("A waiter that leaves its turn to a fiber of its client that spins gives up the place of its client", function* () {
    const { entered, lock, section, server, waiting } = yield* whileMessagesLie(() => 0)
    const { store } = server
    const [waiter, third] = [yield* clientOf({ store }, patient), yield* clientOf({ store }, patient)]
    yield* Fiber.interrupt(waiting)
    const enter = <E>(who: string, lock: Lock.Lock<RedisLock.RedisLock, E>, service: typeof waiter) =>
      section(who, 1000).pipe(Lock.withLock(lock), as(service), background)
    const first = yield* enter("first", lock, waiter)
    yield* TestClock.adjust(10)
    yield* enter("spinning", SpinLock.make("a", { schedule: Schedule.spaced("1 hour") }), waiter)
    yield* TestClock.adjust(10)
    const last = yield* enter("third", lock, third)
    yield* TestClock.adjust(10)
    yield* Fiber.interrupt(first)
    yield* TestClock.adjust(1000)
    yield* TestClock.adjust(100)
    assert.deepStrictEqual(entered, ["holder", "third"])
    yield* TestClock.adjust(1000)
    yield* Fiber.join(last)
  })

  test("A lock that a release has left to its own client is handed on when nobody there wants it any more", function* () {
    const [server, one, two] = yield* storeWith(patient, patient)
    const { entered, section } = makeSections()
    const enter = (who: string, millis: number, service: typeof one) =>
      section(who, millis).pipe(Lock.withLock("a"), as(service), background)
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
  })
})

/** The server's time in microseconds: the token of a lock that nobody else wants. */
const serverMicros = ({ store }: TestStore) =>
  Effect.map(runOperation(store, "lock/acquire", ["clock", "clock:token"], ["nobody", 1, 1]), Number)

const isOwn = ([channel]: readonly [string, string]) => !channel.endsWith("}") && !channel.endsWith(":ours")

/** A store whose messages a test reads, and to which it adds its own. */
const overheard = (server: TestStore, onOwn: () => Effect.Effect<void> = () => Effect.void) => {
  const heard: Array<readonly [channel: string, message: string]> = []
  const listeners = new Map<string, (signal: RedisDriver.Signal) => void>()
  return {
    heard,
    say: (channel: string, message: string) =>
      Effect.sync(() => listeners.get(channel)?.({ _tag: "Message", message })),
    store: {
      ...server.store,
      subscribe: (channel: string) =>
        Stream.merge(
          Stream.tap(server.store.subscribe(channel), (signal) => {
            if (signal._tag !== "Message") return Effect.void
            heard.push([channel, signal.message])
            return isOwn([channel, signal.message]) ? onOwn() : Effect.void
          }),
          Stream.callback<RedisDriver.Signal>((queue) =>
            Effect.sync(() => listeners.set(channel, (signal) => Queue.offerUnsafe(queue, signal)))
          )
        )
    }
  }
}

/** A holder that leaves after a second, and a client that waits and whose messages the test reads. */
const whileOverheard = Effect.fnUntraced(function* (
  wait: (section: ReturnType<typeof makeSections>["section"]) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>,
  {
    lock = Lock.make("a"),
    ...options
  }: RedisLock.RedisLockOptions & { readonly lock?: Lock.Lock<RedisLock.RedisLock, any> } = patient
) {
  const [server, holder] = yield* storeWith(patient)
  const radio = overheard(server)
  const waiter = yield* clientOf(radio, options)
  const { entered, section } = makeSections()
  yield* section("holder", 1000).pipe(Lock.withLock(lock), as(holder), background)
  yield* TestClock.adjust(1)
  const waiting = yield* wait(section).pipe(as(waiter), background)
  yield* TestClock.adjust(10)
  return { ...radio, entered, holder, section, server, waiting }
})

for (const [kind, lock, named] of [
  ["plain", Lock.make("a"), { acquire: "lock/acquire", release: "lock/release" }],
  ["fair", FairLock.make("a"), { acquire: "fair_lock/acquire", release: "fair_lock/release" }]
] as const) {
  describe(`the message of a release of a ${kind} lock is the grant`, () => {
    const overhearing = { ...patient, lock }
    const once = (section: ReturnType<typeof makeSections>["section"]) =>
      section("waiter", 1000).pipe(Lock.withLock(lock))

    test("A section begins before its confirmation is answered, with the token of the message", function* () {
      const tokens: Array<bigint> = []
      const { entered, heard, server, waiting } = yield* whileOverheard(
        (section) =>
          Effect.flatMap(Lock.currentHolding(lock), ({ token }) => Effect.sync(() => tokens.push(token))).pipe(
            Effect.andThen(section("waiter", 1000)),
            Lock.withLock(lock)
          ),
        overhearing
      )
      server.delay = (operation) => (operation === "lock/renew" ? 500 : 0)
      yield* TestClock.adjust(1001)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      const [, message] = heard.find(isOwn)!
      assert.deepStrictEqual(tokens, [BigInt(message.split(" ")[2]!)])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(server.operations.slice(-2), ["lock/renew", named.release])
      assert.isTrue(yield* server.isFree("a"))
    })

    test("A forged message lets nobody in: not without the owner's id, and not before the grant", function* () {
      const { entered, say, server, waiting } = yield* whileOverheard(once, overhearing)
      const asks = server.operations.lastIndexOf(named.acquire)
      const owner = String(server.args[asks]![0])
      const channel = `redisson_lock__channel:{a}:${kind === "fair" ? owner : owner.slice(0, 36)}`
      const micros = yield* serverMicros(server)
      // the reply to the confirmation would end a hold that is not the waiter's: too late
      server.delay = (operation) => (operation === "lock/renew" ? 10 : 0)
      for (const guess of ["", "1", "0000-000000000000", "*", ...(kind === "fair" ? [owner.slice(37)] : [])]) {
        yield* say(channel, `0 ${guess} ${micros} ${micros} 2000`)
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(entered, ["holder"])
      }
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(waiting)
    })

    test("A message that comes twice lets somebody in once", function* () {
      const { entered, heard, say, section, server, waiting } = yield* whileOverheard(
        (section) =>
          section("waiter", 10).pipe(
            Lock.withLock(lock),
            Effect.andThen(section("again", 10).pipe(Lock.withLock(lock)))
          ),
        overhearing
      )
      const between = yield* section("between", 1000).pipe(
        Lock.withLock(lock),
        as(yield* clientOf(server, patient)),
        background
      )
      yield* TestClock.adjust(1001)
      yield* TestClock.adjust(20)
      assert.deepStrictEqual(entered, ["holder", "waiter", "between"])
      for (const [channel, message] of heard.filter(isOwn)) yield* say(channel, message)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(entered, ["holder", "waiter", "between"])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(between)
      yield* TestClock.adjust(100)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(entered, ["holder", "waiter", "between", "again"])
    })

    test("A confirmation that finds the lock with somebody else interrupts the section, which fails with LockLost", function* () {
      const { entered, server, waiting } = yield* whileOverheard(once, overhearing)
      server.delay = (operation) => (operation === "lock/renew" ? 200 : 0)
      yield* TestClock.adjust(1001)
      assert.deepStrictEqual(entered, ["holder", "waiter"])
      yield* server.delete("a")
      yield* TestClock.adjust(200)
      const error = failure(yield* Fiber.await(waiting))
      assert.propertyVal(error, "_tag", "LockLost")
      assert.propertyVal(error, "reason", "NotOwner")
    })

    test("A confirmation that fails is repeated; without any until the deadline the lock is lost then", function* () {
      for (const isBackInTime of [true, false]) {
        const { entered, server, waiting } = yield* whileOverheard(
          (section) => section("waiter", 10_000).pipe(Lock.withLock(lock)),
          overhearing
        )
        server.refuses = (operation) => operation === "lock/renew"
        server.failsAfter = 1
        yield* TestClock.adjust(2200)
        assert.deepStrictEqual(entered, ["holder", "waiter"])
        assert.isUndefined(waiting.pollUnsafe())
        if (isBackInTime) server.refuses = () => false
        yield* TestClock.adjust(900)
        assert.strictEqual(waiting.pollUnsafe() === undefined, isBackInTime)
        yield* TestClock.adjust(10_000)
        const exit = yield* Fiber.await(waiting)
        if (isBackInTime) {
          assert.isTrue(Exit.isSuccess(exit))
        } else {
          const error = failure(exit)
          assert.propertyVal(error, "_tag", "LockLost")
          assert.propertyVal(error, "reason", "RenewalFailed")
        }
      }
    })
  })
}

describe("the message of a release is the grant", () => {
  const once = (section: ReturnType<typeof makeSections>["section"]) => section("waiter", 1000).pipe(Lock.withLock("a"))

  test("Whoever stands behind a waiter that is interrupted before it begins takes what was handed over", function* () {
    const { entered, section, server } = yield* whileOverheard(() => Effect.void)
    const interrupted: Array<Fiber.Fiber<unknown, unknown>> = []
    // between the message and the turn in which its waiter goes on
    const told = overheard(server, () => Effect.sync(() => queueMicrotask(() => interrupted.pop()?.interruptUnsafe())))
    const waiter = yield* clientOf(told, patient)
    const wait = (who: string) => section(who, 10).pipe(Lock.withLock("a"), as(waiter), background)
    const [first, second] = [yield* wait("first"), yield* wait("second")]
    yield* TestClock.adjust(10)
    interrupted.push(first)
    server.operations.length = 0
    yield* TestClock.adjust(1001)
    yield* TestClock.adjust(100)
    yield* Fiber.join(second)
    assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(first)))
    assert.deepStrictEqual(entered, ["holder", "second"])
    const since = server.operations.indexOf("lock/release")
    assert.deepStrictEqual(server.operations.slice(since), ["lock/release", "lock/renew", "lock/release"])
    assert.isTrue(yield* server.isFree("a"))
  })

  test("A waiter that has lost its connection for commands begins no section that it could not keep, and goes on waiting", function* () {
    const { entered, server, waiting } = yield* whileOverheard(once, { fallbackInterval: "1 second", label: "" })
    yield* TestClock.adjust(900)
    // but for the release
    server.refuses = (operation) => operation !== "lock/release"
    yield* TestClock.adjust(1500)
    assert.deepStrictEqual(entered, ["holder"])
    server.refuses = () => false
    yield* TestClock.adjust(3000)
    assert.deepStrictEqual(entered, ["holder", "waiter"])
    yield* TestClock.adjust(1000)
    yield* Fiber.join(waiting)
  })

  const { readLock, writeLock } = ReadWriteLock.make("a")
  const renewFor = (leaseTime: Duration.Input) =>
    Effect.flatMap(Lock.currentHolding(Lock.make("a")), (holding) => holding.renew(leaseTime))
  for (const [what, lock, holders, then] of [
    [
      "re-enters with a shorter lease",
      Lock.make("a"),
      Lock.make("a"),
      Lock.withLock(Effect.void, "a", { leaseTime: "5 seconds" })
    ],
    ["renews it for less", Lock.make("a"), Lock.make("a"), renewFor("5 seconds")],
    ["renews it for less than it was handed", Lock.make("a"), Lock.make("a"), renewFor("1 second")],
    [
      "reads once more with a longer lease",
      readLock,
      writeLock,
      Lock.withLock(Effect.sleep("5 seconds"), readLock, { leaseTime: "5 minutes" })
    ]
  ] as const) {
    test(`A section that ${what} after the extension of what it was handed has failed keeps its own lease`, function* () {
      const [server, holder, waiter] = yield* storeWith(patient, patient)
      yield* background(Effect.sleep(1000).pipe(Lock.withLock(holders), as(holder)))
      yield* TestClock.adjust(1)
      const section = Effect.sleep(10).pipe(Effect.andThen(then), Effect.andThen(Effect.sleep("30 seconds")))
      const waiting = yield* background(section.pipe(Lock.withLock(lock, { leaseTime: "1 minute" }), as(waiter)))
      yield* TestClock.adjust(10)
      let renewals = 0
      server.failsAfter = 1
      server.refuses = (operation) => operation.endsWith("/renew") && ++renewals === 1
      yield* TestClock.adjust(993)
      assert.strictEqual(renewals, 1)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.await(waiting), Exit.void)
      assert.isAbove(renewals, 1)
    })
  }

  for (const [why, since] of [
    ["as long as it knows nothing of the server's clock", Number.POSITIVE_INFINITY],
    ["where by what it knows of the server's clock it was sent in the future", -1]
  ] as const)
    test(`A waiter that cannot tell how old the message is asks, ${why}`, function* () {
      const [server, holder] = yield* storeWith(patient)
      const unknown = { ...server.store, longestSince: () => since }
      const waiter = yield* clientOf({ store: unknown }, patient)
      yield* Effect.sleep(1000).pipe(Lock.withLock("a"), as(holder), background)
      yield* TestClock.adjust(1)
      const waiting = yield* Lock.withLock(Effect.sleep(1), "a").pipe(as(waiter), background)
      yield* TestClock.adjust(10)
      server.operations.length = 0
      yield* TestClock.adjust(1001)
      yield* TestClock.adjust(10)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(server.operations, ["lock/release", "lock/acquire", "lock/release"])
    })
})
