/**
 * What is said of a lock that was lost, or could not be had: what was seen, and nothing else.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Scope } from "effect"
import {
  CountDownLatch,
  Lock,
  LockLost,
  LockTimeout,
  MultiLock,
  PermitId,
  PermitSemaphore,
  type RedisLock,
  Semaphore,
  type StoreReason
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { jumpingClock } from "../kit/jumpingClock.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

/** How a renewed lock is lost whose renewals fail so, or are not answered. */
const lossBy = (reason: StoreReason | undefined) =>
  Effect.gen(function* () {
    const server = yield* testStore()
    const service = yield* clientOf(
      {
        store: wrappedStore(server.store, ({ fail, operation, run }) =>
          operation !== "lock/renew" ? run() : reason === undefined ? Effect.never : fail(reason)
        )
      },
      { watchdogLeaseTime: 3000 }
    )
    const losing = yield* background(Effect.flip(as(service)(Lock.withLock(Effect.never, "a"))))
    yield* TestClock.adjust(3000)
    const exit = losing.pollUnsafe()
    assert.isDefined(exit)
    return (yield* exit!) as LockLost
  })

describe("LockLost", () => {
  const refusals: ReadonlyArray<readonly [StoreReason, RegExp]> = [
    ["OutOfMemory", /out of memory \(OOM\)/],
    ["PersistenceFailed", /cannot save to disk \(MISCONF\)/],
    ["NoPermission", /may not do this \(NOPERM\)/],
    ["TimedOut", /Redis did not answer in time/]
  ]
  for (const [reason, says] of refusals) {
    test(`LockLost names the reason why the renewals failed: ${reason}`, function* () {
      const lost = yield* lossBy(reason)
      assert.strictEqual(lost.reason, "RenewalFailed")
      assert.match(lost.message, says)
      if (reason !== "TimedOut") assert.notInclude(lost.message, "did not answer")
      assert.notInclude(lost.message, "stopped or blocked")
    })
  }

  test("LockLost says that a renewal was not answered", function* () {
    const lost = yield* lossBy(undefined)
    assert.strictEqual(lost.reason, "RenewalFailed")
    assert.include(lost.message, "a renewal was not answered before the lease had ended")
    assert.notInclude(lost.message, "longer lease")
  })

  test("LockLost says that the process was stopped or blocked if its own timer was late", function* () {
    expectWarning(/^The lock's scope has closed, but its release went wrong\./)
    const { jump, on } = yield* jumpingClock
    const losing = Effect.gen(function* () {
      const { ensureHeld } = yield* Lock.scoped("a", { leaseTime: 200 })
      yield* jump(500)
      return yield* Effect.flip(ensureHeld)
    }).pipe(Effect.scoped)
    const { late, message } = yield* on(
      Effect.flatMap(Effect.flatMap(testStore(), clientOf), (service) => as(service)(losing))
    )
    assert.include(message, "its lease ran out while the process was stopped or blocked")
    assert.isAbove(Duration.toMillis(late!), 250)
    assert.match(message, /Noticed [\d.]+ m?s after the lease had ended\./)
    assert.notInclude(message, "longer lease")
  })

  it("LockLost does not say that the process was stopped if that is not known", () => {
    const { message } = new LockLost({ lock: "a", owner: "me:1", reason: "Expired", late: Duration.millis(3) })
    assert.notInclude(message, "stopped or blocked")
    assert.include(message, "or choose a longer lease")
    assert.include(message, "Noticed 3 ms after the lease had ended.")
  })
})

describe("LockLost of permits", () => {
  test("LockLost of permits names their semaphore and their number, and what may have happened to them", function* () {
    const service = yield* clientOf(yield* testStore())
    for (const permits of [1, 2]) {
      const semaphore = PermitSemaphore.make(`thumbnails-${permits}`, { permits: 2 })
      const { message } = yield* Effect.gen(function* () {
        const { ensureHeld, ids, release } = yield* PermitSemaphore.scoped(semaphore, { permits })
        yield* PermitId.tryRelease(semaphore, ids)
        const lost = yield* Effect.flip(release)
        assert.deepInclude(yield* Effect.flip(ensureHeld), { _tag: "LockLost", permits })
        return lost
      }).pipe(Effect.scoped, as(service))
      const what = `${permits} permit${permits === 1 ? "" : "s"}`
      assert.include(message, `The hold of ${what} of semaphore "thumbnails-${permits}" was lost: `)
      assert.include(message, "it was released by its id, or its semaphore was force-released, deleted or evicted")
      assert.include(message, "INFO tells evicted_keys and uptime_in_seconds")
    }
  })

  test("LockLost of permits without ids has their number, too", function* () {
    const scope = yield* Scope.make()
    const service = yield* Effect.flatMap(testStore(), clientOf).pipe(Scope.provide(scope))
    const semaphore = Semaphore.make("cpus", { permits: 3 })
    const using = yield* background(Effect.flip(as(service)(Semaphore.withPermits(Effect.never, semaphore, 3))))
    yield* Scope.close(scope, Exit.void)
    const lost = yield* Fiber.join(using)
    assert.deepInclude(lost, { _tag: "LockLost", reason: "ClientClosed", permits: 3 })
  })
})

describe("LockTimeout", () => {
  test("A caller that may not wait is told what was not free, and not how long its one request took", function* () {
    const [server, holder, other] = yield* storeWith({}, {})
    const five = PermitSemaphore.make("five", { permits: 5 })
    yield* as(holder)(
      Effect.gen(function* () {
        yield* Lock.scoped("report")
        yield* PermitSemaphore.scoped(five, { permits: 5 })
        yield* CountDownLatch.trySetCount("imports", 2)
      })
    )
    server.delay = () => 7
    // what is held is given back with nobody to move the clock
    yield* Effect.addFinalizer(() => Effect.sync(() => (server.delay = () => 0)))
    const once = { waitTime: 0 }
    const asked: ReadonlyArray<Effect.Effect<unknown, Error, RedisLock.RedisLock>> = [
      Lock.withLock(Effect.void, "report", once),
      Lock.withLock(Effect.void, MultiLock.make(["report", "ledger"]), once),
      PermitSemaphore.withPermit(Effect.void, five, once),
      Semaphore.withPermits(Effect.void, "none", 1, once),
      CountDownLatch.await("imports", once)
    ]
    for (const ask of asked) {
      const asking = yield* as(other)(Effect.flip(ask)).pipe(background)
      yield* TestClock.adjust(100)
      const { message } = yield* Fiber.join(asking)
      assert.match(message, /(was not free|did not have 1 free permit|did not exist|did not open)[.;]/)
      assert.notInclude(message, "within")
    }
  })

  it("LockTimeout tells the holder's lease, and that the lock may stay taken for longer, unless its minHold keeps it", () => {
    const heldBy = (owner: string) => {
      const holder = { owner, remaining: Duration.millis(29_900) }
      return new LockTimeout({ lock: "report", waited: Duration.seconds(2), holder }).message
    }
    assert.include(
      heldBy("somebody:1"),
      "held by somebody:1; its lease runs for another 29.9 s, longer if it is renewed"
    )
    assert.include(heldBy("somebody:1:kept"), "held by somebody:1:kept; its lease runs for another 29.9 s.")
  })
})

describe("an acquisition that the server's user may not make", () => {
  const asked = {
    "a lock": Lock.withLock(Effect.void, "a"),
    permits: Semaphore.withPermits(Effect.void, Semaphore.make("b", { permits: 1 }), 1)
  }
  for (const [what, ask] of Object.entries(asked)) {
    // a warning that no test expects is an error
    test(`An acquisition of ${what} without permission fails with NoPermission, and warns of nothing else`, function* () {
      const server = yield* testStore()
      const service = yield* clientOf({
        store: wrappedStore(server.store, ({ fail }) => fail("NoPermission"))
      })
      const error = yield* Effect.flip(as(service)(ask))
      assert.strictEqual(error._tag === "LockStoreError" && error.reason, "NoPermission")
    })
  }
})
