/**
 * However silent the store: an acquisition that is interrupted, or has failed, ends within 200 ms, and its rollback goes on in the background.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch } from "effect"
import {
  FairLock,
  LeaderElection,
  Lock,
  type LockStore,
  MultiLock,
  PermitSemaphore,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import { kinds } from "../contract/suite/kinds.ts"
import { background } from "../kit/background.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

interface Case {
  readonly name: string
  /** Keeps the other one off. */
  readonly rival: (body: Effect.Effect<void>) => Effect.Effect<void, unknown, RedisLock.RedisLock>
  readonly acquire: Effect.Effect<unknown, unknown, RedisLock.RedisLock>
}

const cases: ReadonlyArray<Case> = [
  ...kinds.map(({ make, name, rival = make }) => ({
    name,
    rival: Lock.withLock(rival("a")),
    acquire: Effect.scoped(Lock.scoped(make("a")))
  })),
  {
    name: "a MultiLock",
    rival: Lock.withLock("a"),
    acquire: Effect.scoped(Lock.scoped(MultiLock.make(["a", "b"])))
  },
  {
    name: "an election",
    rival: Lock.withLock(FairLock.make("a")),
    acquire: Effect.scoped(LeaderElection.campaign(LeaderElection.make("a")))
  },
  {
    name: "a PermitSemaphore",
    rival: PermitSemaphore.withPermits(PermitSemaphore.make("a", { permits: 3 }), 3),
    acquire: Effect.scoped(PermitSemaphore.scoped("a", { permits: 2 }))
  },
  {
    name: "a Semaphore",
    rival: Semaphore.withPermits(Semaphore.make("a", { permits: 3 }), 3),
    acquire: Effect.scoped(Semaphore.scoped("a", 2))
  }
]

/** What becomes of a command; soon enough for each rollback to be awaited to its end. */
const [silent, late] = [Effect.never, Effect.sleep(140)]

for (const [what, answer] of [
  ["is silent", silent],
  ["answers late", late]
] as const) {
  describe(`an acquisition that is interrupted while the store ${what}`, () => {
    for (const { acquire, name, rival } of cases) {
      for (const waitedMillis of [0, 500, 1000]) {
        test(`${name} that was waited for during ${waitedMillis} ms: the interruption ends within 200 ms while the store ${what}`, function* () {
          const server = yield* testStore()
          let isLate = false
          const store = wrappedStore(server.store, ({ run }) =>
            Effect.suspend(() => (isLate ? Effect.andThen(answer, run()) : run()))
          )
          const one = yield* clientOf(server)
          const other = yield* clientOf({ store }, { fallbackInterval: "1 second", releaseTimeout: "10 millis" })
          yield* sectionUntilTold((body) => as(one)(rival(body)))
          if (waitedMillis === 0) isLate = true
          const waiting = yield* background(as(other)(acquire))
          yield* TestClock.adjust(waitedMillis === 1000 ? 900 : waitedMillis)
          isLate = true
          // by then it asks by the clock
          yield* TestClock.adjust(waitedMillis === 1000 ? 300 : 0)
          const interrupting = yield* background(Fiber.interrupt(waiting))
          yield* TestClock.adjust(200)
          const hasEnded = interrupting.pollUnsafe() !== undefined
          // what is late ends as well, or the test would not end
          yield* TestClock.adjust("1 minute")
          assert.isTrue(hasEnded)
        })
      }
    }
  })
}

test("A wait that runs out while the store is silent ends within 300 ms, without the label of the holder", function* () {
  const [server, holder, waiter] = yield* storeWith({ label: "worker-3" }, { fallbackInterval: "1 hour" })
  yield* Lock.scoped("a").pipe(as(holder))
  const asking = Lock.withLock(Effect.void, "a", { waitTime: "2 seconds" })
  const waiting = yield* asking.pipe(as(waiter), Effect.flip, background)
  yield* TestClock.adjust("1900 millis")
  server.delay = () => 10_000
  yield* TestClock.adjust("400 millis")
  const hasEnded = waiting.pollUnsafe() !== undefined
  server.delay = () => 0
  yield* TestClock.adjust("1 minute")
  assert.strictEqual((yield* Fiber.join(waiting))._tag, "LockTimeout")
  assert.isTrue(hasEnded)
})

for (const [how, isRefused] of [
  ["is interrupted", false],
  ["is refused", true]
] as const) {
  test(`A campaign that has won and ${how} while it announces that to a silent store ends within 200 ms, and resigns`, function* () {
    const server = yield* testStore()
    let isSilent = false
    const store = wrappedStore(server.store, ({ fail, operation, run }) =>
      Effect.suspend(() => {
        if (operation === "record/write") isSilent = true
        if (!isSilent) return run()
        return operation === "record/write" && isRefused
          ? fail("NoPermission")
          : Effect.andThen(Effect.sleep(server.store.commandTimeoutMillis), fail("TimedOut"))
      })
    )
    const client = yield* clientOf({ store })
    const campaign = yield* background(
      as(client)(Effect.exit(Effect.scoped(LeaderElection.campaign(LeaderElection.make("a")))))
    )
    yield* TestClock.adjust(0)
    assert.isTrue(isSilent)
    if (!isRefused) yield* background(Fiber.interrupt(campaign))
    yield* TestClock.adjust(200)
    const hasEnded = campaign.pollUnsafe() !== undefined
    assert.isFalse(yield* server.isFree("a"))
    isSilent = false
    yield* TestClock.adjust("20 seconds")
    assert.isTrue(yield* server.isFree("a"))
    assert.isTrue(hasEnded)
  })
}

describe("a MultiLock that has acquired some of its members when the store falls silent", () => {
  /** One that has acquired "a", and waits for "b". */
  const setUp = (options?: Lock.AcquireOptions) =>
    Effect.gen(function* () {
      const server = yield* testStore()
      let isSilent: (operation: LockStore.Operation) => boolean = () => false
      let isLate = false
      const back = Latch.makeUnsafe(false)
      const store = wrappedStore(server.store, ({ fail, operation, run }) =>
        Effect.suspend(() => {
          if (isSilent(operation)) return Effect.andThen(back.await, fail("TimedOut"))
          return isLate ? Effect.andThen(late, run()) : run()
        })
      )
      const one = as(yield* clientOf(server))
      const other = as(yield* clientOf({ store }))
      const [a, b] = [
        yield* sectionUntilTold((body) => one(Lock.withLock(body, "a"))),
        yield* sectionUntilTold((body) => one(Lock.withLock(body, "b")))
      ]
      const waiting = yield* background(Effect.scoped(other(Lock.scoped(MultiLock.make(["a", "b"]), options))))
      yield* TestClock.adjust(10)
      yield* a.end
      yield* TestClock.adjust(10)
      assert.isFalse(yield* server.isFree("a"), "it keeps what it has")
      return {
        server,
        waiting,
        endB: b.end,
        silence: (operations: typeof isSilent) => void (isSilent = operations),
        beLate: () => void (isLate = true),
        /** Whether a fiber ends within this time, before the store answers again. */
        endsWithin: (fiber: Fiber.Fiber<unknown, unknown>, millis: number) =>
          Effect.gen(function* () {
            yield* TestClock.adjust(millis)
            const hasEnded = fiber.pollUnsafe() !== undefined
            isSilent = () => false
            back.openUnsafe()
            yield* TestClock.adjust("1 minute")
            return hasEnded
          })
      }
    })

  test("A MultiLock that keeps a member and waits for another: the interruption ends within 200 ms", function* () {
    const { endsWithin, silence, waiting } = yield* setUp()
    silence(() => true)
    assert.isTrue(yield* endsWithin(yield* background(Fiber.interrupt(waiting)), 200))
  })

  test("A MultiLock that keeps a member while the store answers late: the interruption ends within 200 ms", function* () {
    const { beLate, endsWithin, waiting } = yield* setUp()
    beLate()
    assert.isTrue(yield* endsWithin(yield* background(Fiber.interrupt(waiting)), 200))
  })

  test("A MultiLock that is giving a member back meanwhile: the interruption ends within 200 ms", function* () {
    const { endsWithin, server, silence, waiting } = yield* setUp()
    silence((operation) => operation === "lock/release")
    // it has kept the member for long enough
    yield* TestClock.adjust("1600 millis")
    silence(() => true)
    assert.isFalse(yield* server.isFree("a"))
    assert.isTrue(yield* endsWithin(yield* background(Fiber.interrupt(waiting)), 200))
  })

  test("A MultiLock that is to give a member back meanwhile: the interruption ends within 200 ms", function* () {
    // it keeps it for 1 to 1.5 s
    const random = vi.spyOn(Math, "random").mockReturnValue(0)
    yield* Effect.addFinalizer(() => Effect.sync(() => random.mockRestore()))
    const { endsWithin, silence, waiting } = yield* setUp()
    silence(() => true)
    // shortly before it has kept the member for long enough
    yield* TestClock.adjust(860)
    assert.isTrue(yield* endsWithin(yield* background(Fiber.interrupt(waiting)), 200))
  })

  test("A MultiLock that renews its fixed leases at last: the interruption ends within 200 ms", function* () {
    const { endB, endsWithin, server, silence, waiting } = yield* setUp({ leaseTime: "20 seconds" })
    silence((operation) => operation === "lock/renew")
    yield* endB
    yield* TestClock.adjust(10)
    assert.isUndefined(waiting.pollUnsafe())
    assert.isTrue(yield* endsWithin(yield* background(Fiber.interrupt(waiting)), 200))
    for (const name of ["a", "b"]) assert.isTrue(yield* server.isFree(name), name)
  })

  test("A MultiLock that keeps a member fails within 200 ms of its wait time", function* () {
    const { endsWithin, silence, waiting } = yield* setUp({ waitTime: "500 millis" })
    silence(() => true)
    assert.isTrue(yield* endsWithin(waiting, 680))
  })
})

describe("a name that holds something else", () => {
  const permits = PermitSemaphore.withPermit(PermitSemaphore.make("a", { permits: 3 }))
  const requests: Record<string, Omit<Case, "name">> = {
    "a lock": { rival: permits, acquire: Lock.withLock(Effect.void, "a") },
    "several locks": { rival: permits, acquire: Lock.withLock(Effect.void, MultiLock.make(["a", "b"])) },
    permits: { rival: Lock.withLock("a"), acquire: permits(Effect.void) }
  }
  for (const [what, { acquire, rival }] of Object.entries(requests)) {
    test(`An interruption ends at once while a request for ${what} looks what there is under the name`, function* () {
      const [server, one] = yield* storeWith({})
      yield* sectionUntilTold((body) => as(one)(rival(body)))
      let hasLooked = false
      const back = Latch.makeUnsafe(false)
      const store = wrappedStore(server.store, ({ fail, operation, run }) =>
        operation === "lock/found"
          ? Effect.suspend(() => ((hasLooked = true), Effect.andThen(back.await, fail())))
          : run()
      )
      const service = yield* clientOf({ store })
      const asking = yield* background(as(service)(acquire))
      yield* TestClock.adjust(10)
      assert.isTrue(hasLooked)
      const interrupting = yield* background(Fiber.interrupt(asking))
      yield* TestClock.adjust(1)
      const exit = asking.pollUnsafe()
      // what is late ends as well, or the test would not end
      back.openUnsafe()
      yield* Fiber.join(interrupting)
      assert.isTrue(exit !== undefined && Exit.hasInterrupts(exit))
    })
  }
})
