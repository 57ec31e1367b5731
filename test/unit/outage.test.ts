/**
 * Waiters whose store cannot be reached for a while.
 */
import { failure } from "../kit/exits.ts"
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { FairLock, Lock, LockStoreError, LockTimeout, MultiLock, RedLock, type RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, quorumOf, storeWith, testStore, type TestStore, testStores } from "../kit/testStore.ts"
import { background } from "../kit/background.ts"
import { type Awaited, awaited, type WaitFailure } from "../kit/awaited.ts"
import { pass } from "../kit/passTime.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { testQuietly as test } from "../kit/test.ts"

interface Case extends Awaited {
  readonly on?: "quorum"
}

const cases: Record<string, Case> = {
  ...awaited,
  "a lock on a quorum": { ...awaited["a lock"], on: "quorum" },
  "a read lock on a quorum": { ...awaited["a read lock"], on: "quorum" }
}

// so that what is held outlives the outage
const patient = { watchdogLeaseTime: "10 minutes" } as const

const siteOf = Effect.fnUntraced(function* ({ on }: Case, options: RedisLock.RedisLockOptions = patient) {
  const stores: ReadonlyArray<TestStore> = on === "quorum" ? yield* testStores(3) : [yield* testStore()]
  const service = () => (on === "quorum" ? quorumOf(stores, options) : clientOf(stores[0]!, options))
  return {
    holder: yield* service(),
    waiter: yield* service(),
    setDown: (isDown: boolean) => {
      for (const store of stores) store.isDown = isDown
    },
    /** Subscriptions stand meanwhile. */
    refuse: (reason: LockStoreError["reason"]) => {
      for (const store of stores) {
        store.refuses = () => true
        store.reason = reason
      }
    },
    answer: () => {
      for (const store of stores) store.refuses = () => false
    },
    asked: () => stores[0]!.asked
  }
})

const errorOf = (exit: Exit.Exit<unknown, WaitFailure> | undefined): WaitFailure => {
  assert.isDefined(exit, "still waits")
  return failure(exit!)
}

const assertStoreError = (error: WaitFailure, reason: LockStoreError["reason"]) => {
  assert.instanceOf(error, LockStoreError)
  assert.strictEqual((error as LockStoreError).reason, reason)
}

describe("waiting outlives an outage:", () => {
  for (const [what, each] of Object.entries(cases)) {
    const { held, open, wait } = each
    /** A test on stores of its own. */
    const testOn = (
      title: string,
      steps: (
        site: Effect.Success<ReturnType<typeof siteOf>>
      ) => Generator<Effect.Effect<unknown, WaitFailure, any>, void, any>,
      options?: RedisLock.RedisLockOptions
    ) =>
      test(title, function* () {
        yield* steps(yield* siteOf(each, options))
      })

    testOn(
      `A waiter for ${what} goes on when the store is back, and asks at most once an interval until then`,
      function* ({ asked, holder, setDown, waiter }) {
        const holding = yield* background(as(holder)(held))
        yield* pass(1)
        const waiting = yield* background(as(waiter)(wait()))
        yield* pass(3)
        setDown(true)
        const before = asked()
        yield* pass(20)
        assert.isUndefined(waiting.pollUnsafe(), "the outage ended its wait")
        // the holder's client may ask, too, to renew
        assert.isAtMost(asked() - before, 50)
        setDown(false)
        yield* pass(2)
        assert.isUndefined(waiting.pollUnsafe(), "it is held yet")
        yield* Fiber.interrupt(holding)
        if (open !== undefined) yield* as(holder)(open)
        yield* pass(5)
        assert.deepStrictEqual(waiting.pollUnsafe(), Exit.void)
      }
    )

    testOn(`A fiber that arrives during an outage waits for ${what} like any other`, function* ({ setDown, waiter }) {
      setDown(true)
      const waiting = [
        yield* background(as(waiter)(wait())),
        yield* background(as(waiter)(wait({ waitTime: "1 minute" })))
      ]
      yield* pass(15)
      assert.isTrue(waiting.every((fiber) => fiber.pollUnsafe() === undefined))
      setDown(false)
      yield* pass(6)
      for (const fiber of waiting) assert.deepStrictEqual(fiber.pollUnsafe(), Exit.void)
    })

    // as when the connection for messages is back before that for commands: nothing will signal that the latter is, too
    testOn(
      `A waiter for ${what} goes on within seconds after an outage, however long its fallback interval`,
      function* ({ answer, refuse, waiter }) {
        refuse("NotConnected")
        const waiting = yield* background(as(waiter)(wait()))
        yield* pass(20)
        assert.isUndefined(waiting.pollUnsafe())
        answer()
        yield* pass(8)
        assert.deepStrictEqual(waiting.pollUnsafe(), Exit.void)
      },
      { ...patient, fallbackInterval: "5 minutes" }
    )

    testOn(
      `A waiter for ${what} that gives up during an outage fails with the store's failure`,
      function* ({ setDown, waiter }) {
        setDown(true)
        const waiting = [
          yield* background(as(waiter)(wait({ waitTime: "5 seconds" }))),
          yield* background(as(waiter)(wait({ waitTime: "5 seconds" })))
        ]
        yield* pass(4.5)
        assert.isTrue(waiting.every((fiber) => fiber.pollUnsafe() === undefined))
        yield* pass(1.5)
        for (const fiber of waiting) assertStoreError(errorOf(fiber.pollUnsafe()), "NotConnected")
      }
    )

    testOn(
      `A waiter for ${what} that gives up after an outage is told that it was taken`,
      function* ({ holder, setDown, waiter }) {
        yield* background(as(holder)(held))
        yield* pass(1)
        setDown(true)
        const waiting = yield* background(as(waiter)(wait({ waitTime: "8 seconds" })))
        yield* pass(5)
        setDown(false)
        yield* pass(4)
        const error = errorOf(waiting.pollUnsafe())
        assert.strictEqual(error._tag, what === "a latch" ? "LatchTimeout" : "LockTimeout")
      }
    )

    testOn(`A request for ${what} without waiting fails at once during an outage`, function* ({ setDown, waiter }) {
      setDown(true)
      const waiting = yield* background(as(waiter)(wait({ waitTime: 0 })))
      yield* pass(0.1)
      assertStoreError(errorOf(waiting.pollUnsafe()), "NotConnected")
    })

    testOn(`A waiter for ${what} fails at once if waiting does not help`, function* ({ refuse, waiter }) {
      refuse("NoPermission")
      const waiting = yield* background(as(waiter)(wait()))
      yield* pass(0.1)
      assertStoreError(errorOf(waiting.pollUnsafe()), "NoPermission")
    })
  }
})

test("A waiter that gives up during an outage is told that it was taken where its own process holds the lock", function* () {
  const [server, service] = yield* storeWith(patient)
  server.refuses = () => true
  const waiting = yield* background(as(service)(Lock.withLock(Effect.void, "a", { waitTime: 500 })))
  yield* TestClock.adjust(1)
  server.refuses = () => false
  const holding = yield* background(as(service)(Lock.withLockIfAvailable(Effect.never, "a")))
  const { holders } = yield* as(service)(Lock.inspect("a"))
  server.refuses = () => true
  yield* TestClock.adjust(500)
  const error = errorOf(waiting.pollUnsafe())
  assert.instanceOf(error, LockTimeout)
  assert.strictEqual((error as LockTimeout).holder?.owner, holders[0]!.owner)
  server.refuses = () => false
  yield* Fiber.interrupt(holding)
})

describe("an outage that begins for many at once:", () => {
  for (const what of ["a read lock", "a semaphore", "a leased permit"]) {
    const each = cases[what]!
    test(`Ten requests for ${what} that fail together count as one failure: their waiters ask again soon`, function* () {
      const server = yield* testStore()
      let isDown = true
      const store = wrappedStore(server.store, ({ fail, run }) =>
        Effect.suspend(() => (isDown ? Effect.andThen(Effect.sleep(10), fail()) : run()))
      )
      const waiter = yield* clientOf({ store }, { ...patient, fallbackInterval: "5 minutes" })
      const ten = Array.from({ length: 10 }, () => background(as(waiter)(each.wait())))
      const waiting = yield* Effect.all(ten)
      // long enough for the second request, which fails as well
      yield* pass(0.3)
      isDown = false
      yield* pass(1)
      for (const fiber of waiting) assert.deepStrictEqual(fiber.pollUnsafe(), Exit.void)
    })
  }
})

describe("waiting outlives a failed re-entry:", () => {
  for (const [what, lock] of Object.entries({ "a lock": Lock.make("a"), "a fair lock": FairLock.make("a") })) {
    test(`A waiter that may re-enter ${what} does so when the store is back`, function* () {
      const [server, service] = yield* storeWith(patient)
      const rival = yield* background(as(yield* clientOf(server, patient))(Lock.withLock(Effect.never, lock)))
      yield* pass(1)
      let entered = 0
      const section = Effect.sync(() => entered++).pipe(Effect.andThen(Effect.never), Lock.withLock(lock))
      const waiters = yield* background(
        as(service)(Lock.withOwner(Effect.all([section, section], { concurrency: "unbounded" })))
      )
      yield* pass(1)
      // the first extends what was handed over
      let renewals = 0
      server.refuses = (operation) => operation === "lock/renew" && renewals++ > 0
      yield* Fiber.interrupt(rival)
      yield* pass(3)
      assert.isUndefined(waiters.pollUnsafe())
      assert.strictEqual(entered, 1, "the other cannot enter yet")
      server.refuses = () => false
      yield* pass(3)
      assert.strictEqual(entered, 2)
    })
  }
})

describe("waiting outlives a missing quorum:", () => {
  test("A waiter whose requests a minority grants asks no more often than after any other failure", function* () {
    const stores = yield* testStores(3)
    const requests = () => stores[0]!.operations.filter((operation) => operation === "lock/acquire").length
    const waiter = yield* quorumOf(stores, patient)
    const holder = yield* quorumOf(stores, patient)
    const held = yield* background(as(holder)(Lock.withLock(Effect.never, "a")))
    const waiting = yield* background(as(waiter)(Lock.withLock(Effect.void, "a")))
    yield* pass(2)
    yield* Fiber.interrupt(held)
    for (const store of stores.slice(1)) store.isDown = true
    // otherwise a loop without a pause would never end
    stores[0]!.refuses = () => requests() > 1000
    const another = yield* background(as(holder)(Lock.withLock(Effect.void, "a")))
    const before = requests()
    yield* pass(20)
    assert.isUndefined(waiting.pollUnsafe())
    assert.isUndefined(another.pollUnsafe())
    assert.isBelow(requests() - before, 80)
    for (const store of stores) Object.assign(store, { isDown: false, refuses: () => false })
    // or closing would wait for them, in real time
    yield* pass(10)
  })

  const multi = Effect.gen(function* () {
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store) => clientOf(store, patient))
    const red = (name: string) => RedLock.make(services.map((service) => Lock.provide(Lock.make(name), service)))
    const setDown = (isDown: boolean) => {
      for (const store of stores.slice(1)) store.isDown = isDown
    }
    return { lock: MultiLock.make([red("a"), red("b")]), setDown }
  })

  test("A waiter for several RedLocks goes on when a majority is back", function* () {
    const { lock, setDown } = yield* multi
    setDown(true)
    const waiting = yield* background(Lock.withLock(Effect.void, lock, { waitTime: "1 minute" }))
    yield* pass(5)
    assert.isUndefined(waiting.pollUnsafe())
    setDown(false)
    yield* pass(10)
    assert.isTrue(Exit.isSuccess(waiting.pollUnsafe()!))
  })

  test("A waiter for several RedLocks that gives up without a majority fails with QuorumNotReached", function* () {
    const { lock, setDown } = yield* multi
    setDown(true)
    const waiting = yield* background(Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: "5 seconds" })))
    yield* pass(12)
    const exit = waiting.pollUnsafe()
    assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && exit.value._tag === "QuorumNotReached")
    setDown(false)
    yield* pass(10)
  })
})
