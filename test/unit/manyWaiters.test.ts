/**
 * Ten thousand fibers of one process that wait for the same name.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Cause, Effect, Exit, Fiber, References } from "effect"
import {
  type AcquireError,
  CountDownLatch,
  type LatchTimeout,
  Lock,
  type LockLost,
  type LockReentered,
  LockStoreError,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../compose/stores.ts"

const crowd = 10_000

type Failure = AcquireError | LatchTimeout | LockLost | LockReentered
type Wait = Effect.Effect<void, Failure, RedisLock.RedisLock>

const { readLock, writeLock } = ReadWriteLock.make("a")
const permits = PermitSemaphore.make("a", { permits: 1 })
const semaphore = Semaphore.make("a", { permits: 1 })

/** How each kind waits, and what keeps it waiting until it is closed. */
const kinds: Record<string, { readonly wait: Wait; readonly held: Effect.Effect<void, Failure, RedisLock.RedisLock> }> =
  {
    "a lock": { wait: Lock.withLock(Effect.void, "a"), held: Lock.withLock(Effect.never, "a") },
    "a read lock": { wait: Lock.withLock(Effect.void, readLock), held: Lock.withLock(Effect.never, writeLock) },
    "a write lock": { wait: Lock.withLock(Effect.void, writeLock), held: Lock.withLock(Effect.never, readLock) },
    "a semaphore": {
      wait: Semaphore.withPermits(Effect.void, semaphore, 1),
      held: Semaphore.withPermits(Effect.never, semaphore, 1)
    },
    "a leased permit": {
      wait: PermitSemaphore.withPermit(Effect.void, permits),
      held: PermitSemaphore.withPermit(Effect.never, permits)
    },
    "a latch": {
      wait: CountDownLatch.await("a"),
      held: Effect.andThen(CountDownLatch.trySetCount("a", 1), Effect.never)
    }
  }

/** A store that refuses everything at once, on the stack of the caller, once it is told to. */
const refusingStore = Effect.map(testStore(), (server) => {
  const self = {
    refuses: false,
    store: {
      ...server.store,
      run: (operation: string, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>) =>
        self.refuses
          ? Effect.fail(new LockStoreError({ operation, lock: keys[0]!, reason: "NoPermission" }))
          : server.store.run(operation as never, keys, args)
    }
  }
  return self
})

describe(`${crowd} fibers that wait for the same name`, () => {
  for (const [kind, { held, wait }] of Object.entries(kinds)) {
    it.effect(`all learn that the store refuses them, on no deeper a stack than one: ${kind}`, () =>
      Effect.gen(function* () {
        const server = yield* refusingStore
        const holder = yield* clientOf(server)
        const service = yield* clientOf(server)
        yield* held.pipe(as(holder), Effect.forkChild({ startImmediately: true }))
        yield* TestClock.adjust(1)
        const waiters = yield* Effect.forEach(
          Array.from({ length: crowd }),
          () => wait.pipe(as(service), Effect.forkChild({ startImmediately: true })),
          { concurrency: 1 }
        )
        yield* TestClock.adjust(10)
        assert.isTrue(waiters.every((fiber) => fiber.pollUnsafe() === undefined))
        server.refuses = true
        // more than one fallback interval
        yield* TestClock.adjust(2500)
        for (const waiter of waiters) {
          const exit = waiter.pollUnsafe() as Exit.Exit<void, Failure> | undefined
          assert.isDefined(exit, "one still waits")
          assert.strictEqual(reasonOf(exit!), "NoPermission")
        }
        yield* Effect.forEach(waiters, Fiber.await, { discard: true })
      }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "Error"))
    )
  }
})

const reasonOf = (exit: Exit.Exit<void, Failure>): string => {
  if (Exit.isSuccess(exit)) return "succeeded"
  const [reason] = exit.cause.reasons as ReadonlyArray<Cause.Reason<Failure>>
  return reason?._tag === "Fail"
    ? reason.error instanceof LockStoreError
      ? reason.error.reason
      : reason.error._tag
    : String(reason)
}
