/**
 * Thousands of fibers of one process that wait for the same name.
 */
import { assert, describe } from "@effect/vitest"
import { type Cause, Effect, Exit, Fiber } from "effect"
import { FairLock, Lock, LockStoreError } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { type Awaited, awaited, type WaitFailure } from "../kit/awaited.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { type Outcome, wrappedStore } from "../kit/wrappedStore.ts"
import { background } from "../kit/background.ts"
import { test, testQuietly } from "../kit/test.ts"

const crowd = 3000
/** A fair lock's grants each cost as much as all who wait. */
const crowdInOutage = 400

/** What there is a line of its own for, and which part of those in it gives up. */
const kinds: Record<string, Awaited & { readonly givesUp: number }> = {
  "a lock": { ...awaited["a lock"], givesUp: 0.5 },
  "a read lock": { ...awaited["a read lock"], givesUp: 0.5 },
  "a write lock": { ...awaited["a write lock"], givesUp: 0.5 },
  "a semaphore": { ...awaited["a semaphore"], givesUp: 0.5 },
  "a leased permit": { ...awaited["a leased permit"], givesUp: 0.5 },
  "a latch": { ...awaited["a latch"], givesUp: 0.5 },
  // Redisson's layout has each grant write the score of everybody who waits: few are served, so that the test ends
  "a fair lock": { ...awaited["a fair lock"], givesUp: 0.95 }
}

/** A store that refuses everything at once, on the stack of the caller, once it is told to. */
const refusingStore = Effect.map(testStore(), (server) => {
  const self = {
    refuses: false,
    store: wrappedStore(server.store, ({ fail, run }): Outcome => (self.refuses ? fail("NoPermission") : run()))
  }
  return self
})

describe(`${crowd} fibers that wait for the same name`, () => {
  for (const [kind, { held, wait }] of Object.entries(kinds)) {
    // its waiters do not ask while they wait, and each has its own subscription
    if (kind === "a fair lock") continue
    testQuietly(
      `${crowd} waiters all learn that the store refuses them, on no deeper a stack than one: ${kind}`,
      function* () {
        const server = yield* refusingStore
        const holder = yield* clientOf(server)
        const service = yield* clientOf(server)
        yield* held.pipe(as(holder), background)
        yield* TestClock.adjust(1)
        const waiters = yield* Effect.forEach(
          Array.from({ length: crowd }),
          () => wait().pipe(as(service), background),
          { concurrency: 1 }
        )
        yield* TestClock.adjust(10)
        assert.isTrue(waiters.every((fiber) => fiber.pollUnsafe() === undefined))
        server.refuses = true
        // more than one fallback interval
        yield* TestClock.adjust(2500)
        for (const waiter of waiters) {
          const exit = waiter.pollUnsafe() as Exit.Exit<void, WaitFailure> | undefined
          assert.isDefined(exit, "one still waits")
          assert.strictEqual(reasonOf(exit!), "NoPermission")
        }
        yield* Effect.forEach(waiters, Fiber.await, { discard: true })
      }
    )
  }
})

describe("a report of a fair lock, which names 32 waiters", () => {
  test("A waiter with which the next report was to begin gets no place again once it has left", function* () {
    const [, holder, service] = yield* storeWith({}, {})
    const lock = FairLock.make("a")
    yield* Lock.withLock(Effect.never, lock).pipe(as(holder), background)
    const waiters = yield* Effect.forEach(Array.from({ length: 80 }), () =>
      Effect.tap(Lock.withLock(Effect.void, lock).pipe(as(service), background), () => TestClock.adjust(1))
    )
    yield* TestClock.adjust("10 seconds")
    // each report has begun with one of these
    yield* Fiber.interruptAll(waiters.filter((_, i) => i % 2 === 0))
    for (let passed = 0; passed < 10_000; passed += 100) {
      yield* TestClock.adjust(100)
      assert.strictEqual((yield* as(holder)(Lock.inspect(lock))).waiting, 40)
    }
  })
})

/** Lets fibers run, then some virtual time pass, until nothing is left to wait for. */
const passUntil = (isOver: () => boolean, seconds: number) =>
  Effect.gen(function* () {
    for (let passed = 0; passed < seconds * 4 && !isOver(); passed++) {
      yield* TestClock.adjust(250)
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    }
  })

describe(`${crowdInOutage} fibers that wait for the same name through an outage of 40 seconds, with leases of 30`, () => {
  for (const [kind, { givesUp, held, open, wait }] of Object.entries(kinds)) {
    testQuietly(
      `${crowdInOutage} fibers that wait through an outage of 40 seconds, with leases of 30, are served, or give up when they wanted to, and leave nothing behind: ${kind}`,
      function* () {
        const [server, holder, service] = yield* storeWith(
          { watchdogLeaseTime: "10 minutes" },
          { watchdogLeaseTime: "30 seconds" }
        )
        const holding = yield* held.pipe(as(holder), background)
        yield* passUntil(() => false, 0.5)
        const givingUp = Math.round(crowdInOutage * givesUp)
        const waiters = yield* Effect.forEach(
          Array.from({ length: crowdInOutage }, (_, i) => i),
          (i) =>
            // among each other
            wait(i % 20 < givesUp * 20 ? { waitTime: "20 seconds" } : undefined).pipe(as(service), background)
        )
        const done = () => waiters.filter((fiber) => fiber.pollUnsafe() !== undefined)
        yield* passUntil(() => false, 1)
        server.isDown = true
        const before = server.asked
        yield* passUntil(() => false, 40)
        // by one of them an interval, and by the holder's renewals
        assert.isAtMost(server.asked - before, 300)
        assert.strictEqual(done().length, givingUp)
        for (const fiber of done()) assert.strictEqual(reasonOf(fiber.pollUnsafe() as never), "NotConnected")
        server.isDown = false
        yield* passUntil(() => false, 3)
        assert.strictEqual(done().length, givingUp)
        yield* Fiber.interrupt(holding)
        if (open !== undefined) yield* open.pipe(as(holder))
        yield* passUntil(() => done().length === crowdInOutage, 600)
        const exits = waiters.map((fiber) => fiber.pollUnsafe() as Exit.Exit<void, WaitFailure> | undefined)
        assert.isTrue(
          exits.every((exit) => exit !== undefined),
          "some still wait"
        )
        assert.strictEqual(exits.filter((exit) => Exit.isSuccess(exit!)).length, crowdInOutage - givingUp)
        yield* passUntil(() => false, 2)
        const { lines } = service as unknown as LockClient
        assert.strictEqual(lines.size, 0)
        if (kind === "a fair lock") {
          assert.isFalse(yield* as(holder)(Lock.isLocked(FairLock.make("a"))))
          // nobody stands before somebody who comes now
          const next = yield* wait({ waitTime: 0 }).pipe(as(holder), Effect.exit)
          assert.deepStrictEqual<unknown>(next, Exit.void)
        }
      },
      300_000
    )
  }
})

const reasonOf = (exit: Exit.Exit<void, WaitFailure>): string => {
  if (Exit.isSuccess(exit)) return "succeeded"
  const [reason] = exit.cause.reasons as ReadonlyArray<Cause.Reason<WaitFailure>>
  return reason?._tag === "Fail"
    ? reason.error instanceof LockStoreError
      ? reason.error.reason
      : reason.error._tag
    : String(reason)
}
