/**
 * A release takes no longer than the release timeout, however long the store takes to answer.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Logger, Schedule } from "effect"
import { TestClock } from "effect/testing"
import {
  Lock,
  LockStoreError,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  RedLock,
  Semaphore
} from "effect-redis-lock"
import { loss, storeError } from "../kit/exits.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const uses: Record<string, (body: Effect.Effect<void>) => Effect.Effect<void, unknown, RedisLock.RedisLock>> = {
  "a lock": (body) => Lock.withLock(body, "a"),
  "a permit": (body) => Semaphore.withPermits(body, Semaphore.make("a", { permits: 1 }), 1)
}

describe("a store that answers late", () => {
  for (const [what, use] of Object.entries(uses)) {
    test(`The release of ${what} is reported after the release timeout, and takes effect all the same`, function* () {
      const server = yield* testStore()
      const store = { ...server.store, commandLifeMillis: 10_000, commandTimeoutMillis: 10_000 }
      const service = yield* clientOf({ store }, { releaseTimeout: "1 second", watchdogLeaseTime: "1 minute" })
      server.delay = (operation) => (/release|return/.test(operation) ? 8000 : 0)
      const section = yield* background(as(service)(use(Effect.void)))
      yield* TestClock.adjust("1 second")
      const exit = section.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.isFailure(exit))
      yield* TestClock.adjust("20 seconds")
      server.delay = () => 0
      const again = yield* background(as(service)(use(Effect.void)))
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(again)))
    })

    test(`An interrupted section under ${what} ends after the release timeout`, function* () {
      expectWarning(/^The lock's release went wrong after its section had failed\./)
      const server = yield* testStore()
      const store = { ...server.store, commandLifeMillis: 10_000, commandTimeoutMillis: 10_000 }
      const service = yield* clientOf({ store }, { releaseTimeout: "1 second", watchdogLeaseTime: "1 minute" })
      server.delay = (operation) => (/release|return/.test(operation) ? 8000 : 0)
      const section = yield* background(as(service)(use(Effect.never)))
      yield* TestClock.adjust("1 second")
      section.interruptUnsafe()
      yield* TestClock.adjust("999 millis")
      assert.isUndefined(section.pollUnsafe())
      yield* TestClock.adjust("10 millis")
      assert.isDefined(section.pollUnsafe())
      server.delay = () => 0
      yield* TestClock.adjust("20 seconds")
    })
  }
})

describe("a section whose work is done, while its release is not confirmed", () => {
  const reader = ReadWriteLock.make("a").readLock
  const sections: typeof uses = {
    ...uses,
    "a reader": (body) => Lock.withLock(body, reader),
    "permits with ids": (body) => PermitSemaphore.withPermit(body, PermitSemaphore.make("a", { permits: 1 })),
    "a re-entry": (body) => Lock.withLock(Lock.withLock(body, "a"), "a"),
    "two locks that one command releases": (body) =>
      Lock.withLock(body, MultiLock.make([Lock.make("a"), Lock.make("b")])),
    "a lock and a reader": (body) => Lock.withLock(body, MultiLock.make([Lock.make("b"), reader])),
    "a RedLock": (body) => Lock.withLock(body, RedLock.make([Lock.make("a")]))
  }
  for (const [what, section] of Object.entries(sections)) {
    test(`A retry of transient failures does not do the work under ${what} twice`, function* () {
      const [server, service] = yield* storeWith({ releaseTimeout: "1 second", watchdogLeaseTime: "1 minute" })
      let runs = 0
      const work = Effect.sync(() => {
        runs++
        server.isDown = true
      })
      const charge = Effect.retry(as(service)(section(work)), {
        while: (error) => error instanceof LockStoreError && error.isTransient,
        schedule: Schedule.spaced("500 millis")
      })
      const charging = yield* background(Effect.exit(charge))
      yield* TestClock.adjust("5 seconds")
      server.isDown = false
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(runs, 1)
      const error = storeError(yield* Fiber.join(charging))
      assert.isTrue(error.workDone)
      assert.include(error.message, "the work is done")
    })
  }
})

describe("a section whose work is not done, while its release is not confirmed", () => {
  const setUp = Effect.gen(function* () {
    const server = yield* testStore()
    return { server, service: yield* clientOf(server, { releaseTimeout: "1 second", watchdogLeaseTime: "1 minute" }) }
  })

  for (const [what, section] of Object.entries(uses)) {
    it.effect(`The log of the release of ${what} whose section has failed does not say that its work is done`, () => {
      const logged: Array<string> = []
      const logger = Logger.make(({ cause, message }) => void logged.push(`${message} ${Cause.pretty(cause)}`))
      return Effect.gen(function* () {
        const { server, service } = yield* setUp
        const body = Effect.suspend(() => {
          server.isDown = true
          return Effect.die("a defect of the work")
        })
        const failing = yield* background(Effect.exit(as(service)(section(body))))
        yield* TestClock.adjust("2 seconds")
        server.isDown = false
        yield* TestClock.adjust("2 seconds")
        assert.isTrue(Exit.hasDies(yield* Fiber.join(failing)))
        assert.include(logged.join(), "release (")
        assert.notInclude(logged.join(), "the work is done")
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
    })
  }

  test("A MultiLock that has lost a member fails with that loss alone, though another release is not confirmed", function* () {
    const { server, service } = yield* setUp
    const section = Lock.withLock(Effect.never, MultiLock.make(["a", "b"]))
    const losing = yield* background(Effect.exit(as(service)(section)))
    yield* TestClock.adjust(1)
    server.refuses = (operation) => operation.endsWith("/release")
    yield* server.delete("a")
    yield* TestClock.adjust("30 seconds")
    server.refuses = () => false
    yield* TestClock.adjust("5 seconds")
    const exit = yield* Fiber.join(losing)
    assert.deepInclude(loss(exit), { lock: "a", reason: "NotOwner" })
    assert.lengthOf(Exit.isFailure(exit) ? exit.cause.reasons : [], 1)
  })
})

test("An acquisition with unknown outcome that cannot be rolled back in time is warned of once, and its release repeated once a second", function* () {
  const server = yield* testStore()
  const warned: Array<unknown> = []
  const logger = Logger.layer([Logger.make(({ message }) => void warned.push([message].flat()[0]))])
  server.refuses = () => true
  yield* Effect.gen(function* () {
    const store = wrappedStore(server.store, ({ fail, operation, run }) =>
      operation === "lock/acquire" ? fail("TimedOut") : run()
    )
    const client = yield* clientOf({ store })
    const tried = Effect.scoped(Lock.tryScoped("a", { leaseTime: "2 seconds" }))
    const trying = yield* background(Effect.exit(as(client)(tried)))
    yield* TestClock.adjust("30 seconds")
    assert.strictEqual(storeError(yield* Fiber.join(trying)).reason, "TimedOut")
    const { asked } = server
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(server.asked - asked, 10)
  }).pipe(Effect.scoped, Effect.provide(logger))
  assert.deepStrictEqual(warned, ["Could not release in time; the lock frees itself when its lease ends."])
})

test("An acquisition with unknown outcome whose rollback is refused for good is warned of once", function* () {
  const server = yield* testStore()
  const warned: Array<unknown> = []
  const logger = Logger.layer([Logger.make(({ message }) => void warned.push([message].flat()[0]))])
  server.reason = "NoPermission"
  server.refuses = (operation) => operation === "lock/release"
  yield* Effect.gen(function* () {
    const store = wrappedStore(server.store, ({ fail, operation, run }) =>
      operation === "lock/acquire" ? fail("TimedOut") : run()
    )
    const tried = Effect.exit(Effect.scoped(Lock.tryScoped("a")))
    assert.strictEqual(storeError(yield* as(yield* clientOf({ store }))(tried)).reason, "TimedOut")
    yield* TestClock.adjust("1 minute")
  }).pipe(Effect.scoped, Effect.provide(logger))
  assert.deepStrictEqual(warned, ["Could not release in time; the lock frees itself when its lease ends."])
})

test("A release that may have run says so, also where it was tried again in vain", function* () {
  const server = yield* testStore()
  let releases = 0
  const store = wrappedStore(server.store, ({ fail, operation, run }) =>
    operation === "lock/release" ? fail(releases++ === 0 ? "ConnectionLost" : "NotConnected") : run()
  )
  const service = yield* clientOf({ store }, { releaseTimeout: "1 second", watchdogLeaseTime: "10 seconds" })
  const section = yield* Effect.forkChild(Effect.exit(as(service)(Lock.withLock(Effect.void, "a"))))
  yield* TestClock.adjust("2 seconds")
  const error = storeError(yield* Fiber.join(section))
  assert.strictEqual(error.reason, "NotConnected")
  assert.isTrue(error.isOutcomeUnknown)
  expectWarning(/^Could not release in time/)
  yield* TestClock.adjust("20 seconds")
})

test("A release is repeated in the foreground for as long as the release timeout, even a long one", function* () {
  const [server, service] = yield* storeWith({ releaseTimeout: "15 seconds", watchdogLeaseTime: "1 minute" })
  const breaks = Effect.sync(() => void (server.isDown = true))
  const section = yield* background(as(service)(Lock.withLock(breaks, "a")))
  yield* TestClock.adjust("12 seconds")
  assert.isUndefined(section.pollUnsafe())
  server.isDown = false
  yield* TestClock.adjust("2 seconds")
  assert.isTrue(Exit.isSuccess(yield* Fiber.join(section).pipe(Effect.exit)))
})

test("A release is repeated in the foreground no longer than its lease lasts, whatever the release timeout", function* () {
  const [server, service] = yield* storeWith({ releaseTimeout: "10 seconds" })
  const breaks = Effect.sync(() => void (server.isDown = true))
  const section = yield* background(Effect.flip(as(service)(Lock.withLock(breaks, "a", { leaseTime: "2 seconds" }))))
  yield* TestClock.adjust("2 seconds")
  const error = section.pollUnsafe()
  yield* TestClock.adjust("10 seconds")
  assert.isDefined(error)
  assert.strictEqual((yield* Fiber.join(section))._tag, "LockStoreError")
  expectWarning(/^Could not release in time/)
})

for (const [title, reason] of [
  ["A release that has run is no loss, although the server reports an error of the script", "Failed"],
  ["A release that has run is no loss, although its reply is lost", "ConnectionLost"],
  ["A release that has run is no loss, although its reply comes too late", "TimedOut"]
] as const) {
  test(title, function* () {
    const server = yield* testStore()
    let releases = 0
    const store = wrappedStore(server.store, ({ fail, operation, run }) =>
      operation === "lock/release" && releases++ === 0 ? Effect.andThen(run(), fail(reason)) : run()
    )
    const service = yield* clientOf({ store })
    const section = yield* Effect.forkChild(as(service)(Lock.withLock(Effect.succeed("done"), "a")))
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* Fiber.join(section), "done")
    assert.strictEqual(releases, 2)
  })
}

describe("a store whose command timeout is longer than the release timeout", () => {
  const pair = MultiLock.make([Lock.make("a"), Lock.make("b")])
  const usesOfAll = {
    ...uses,
    "two locks that one command releases": (body: Effect.Effect<void>) => Lock.withLock(body, pair)
  }
  for (const [what, use] of Object.entries(usesOfAll)) {
    test(`The release of ${what} is reported after the release timeout, however long a command may take`, function* () {
      const server = yield* testStore()
      const store = { ...server.store, commandLifeMillis: 10_000, commandTimeoutMillis: 60_000 }
      const service = yield* clientOf({ store }, { releaseTimeout: "15 seconds", watchdogLeaseTime: "1 minute" })
      server.delay = (operation) => (/release|return/.test(operation) ? 50_000 : 0)
      const section = yield* background(as(service)(use(Effect.void)))
      yield* TestClock.adjust("14 seconds")
      assert.isUndefined(section.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      const exit = section.pollUnsafe()
      server.delay = () => 0
      yield* TestClock.adjust("2 minutes")
      assert.isTrue(exit !== undefined && Exit.isFailure(exit))
    })
  }
})

test("Locks that one command failed to release are released again at the same time, each within the release timeout", function* () {
  const server = yield* testStore()
  server.refuses = (operation) => operation === "multi_lock/release"
  // of the single releases, the first lock's are never answered
  const store = wrappedStore(server.store, ({ keys, operation, run }) =>
    operation === "lock/release" && keys[0] === "a" ? Effect.andThen(Effect.sleep("30 seconds"), run()) : run()
  )
  const slow = yield* clientOf(
    { store: { ...store, commandTimeoutMillis: 60_000 } },
    { releaseTimeout: "2 seconds", watchdogLeaseTime: "1 minute" }
  )
  const section = yield* background(
    Effect.exit(as(slow)(Lock.withLock(Effect.void, MultiLock.make([Lock.make("a"), Lock.make("b")]))))
  )
  yield* TestClock.adjust("1 second")
  const isFreed = yield* server.isFree("b")
  yield* TestClock.adjust("2 minutes")
  assert.isTrue(isFreed)
  assert.isTrue(Exit.isFailure(yield* Fiber.join(section)))
})

test("A holding that was released says so, and does not blame Redis", function* () {
  const service = yield* clientOf(yield* testStore())
  const holding = yield* as(service)(Lock.scoped("a"))
  yield* holding.release
  for (const asked of [holding.ensureHeld, holding.renew()]) {
    const lost = yield* Effect.flip(asked)
    assert.isTrue(lost._tag === "LockLost" && lost.reason === "Released")
    assert.include(lost.message, "its own holder has released it")
  }
})
