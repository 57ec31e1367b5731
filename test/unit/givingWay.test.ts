/**
 * Fibers that give way to others in the middle of an acquisition, as each does once in a while: nothing that happens meanwhile is missed.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Scheduler, Scope } from "effect"
import {
  CountDownLatch,
  FairLock,
  Lock,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { Parking } from "../kit/parking.ts"
import { pass } from "../kit/passTime.ts"
import { testQuietly as test } from "../kit/test.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")
const permits = PermitSemaphore.make("a", { permits: 1 })
const anonymous = Semaphore.make("a", { permits: 1 })
const latch = CountDownLatch.make("a")
const both = MultiLock.make([Lock.make("a"), Lock.make("b")])
const opened = () => Effect.orDie(CountDownLatch.countDown(latch))

type Needs = RedisLock.RedisLock

/** What another client holds, and what waits for it. */
const waits: Record<
  string,
  readonly [hold: Effect.Effect<unknown, unknown, Needs | Scope.Scope>, wait: Effect.Effect<unknown, unknown, Needs>]
> = {
  "a lock": [Lock.scoped("a"), Lock.withLock(Effect.void, "a")],
  "a lock, for a scope,": [Lock.scoped("a"), Effect.scoped(Lock.scoped("a"))],
  "a fair lock": [Lock.scoped(FairLock.make("a")), Lock.withLock(Effect.void, FairLock.make("a"))],
  "a write lock": [Lock.scoped(readLock), Lock.withLock(Effect.void, writeLock)],
  "a read lock": [Lock.scoped(writeLock), Lock.withLock(Effect.void, readLock)],
  "a leased permit": [PermitSemaphore.scoped(permits), PermitSemaphore.withPermit(Effect.void, permits)],
  "an anonymous permit": [Semaphore.scoped(anonymous, 1), Semaphore.withPermits(Effect.void, anonymous, 1)],
  "several locks": [Lock.scoped("a"), Lock.withLock(Effect.void, both)],
  "a latch": [Effect.acquireRelease(CountDownLatch.trySetCount(latch, 1), opened), CountDownLatch.await(latch)]
}

for (const [what, [hold, wait]] of Object.entries(waits)) {
  for (const isSecond of [false, true]) {
    const who = isSecond ? "the second fiber that waits" : "a fiber that waits"
    test(`Wherever ${who} for ${what} gives way, it is served as soon as it goes on if that is free by then`, function* () {
      for (let operation = 1, isParked = true; isParked; operation++) {
        const server = yield* testStore()
        const [mine, other] = [yield* clientOf(server), yield* clientOf(server)]
        const scope = yield* Scope.make()
        yield* hold.pipe(Scope.provide(scope), as(other))
        if (isSecond) yield* background(wait.pipe(as(mine)))
        yield* pass(0.2)
        const parking = new Parking(operation)
        const waiting = yield* wait.pipe(Effect.provideService(Scheduler.Scheduler, parking), as(mine), background)
        yield* pass(0.2)
        isParked = parking.isParked
        yield* background(Scope.close(scope, Exit.void))
        yield* pass(0.2)
        parking.goOn()
        // long before it would ask by itself
        yield* pass(0.1, 10)
        assert.isTrue(Exit.isSuccess(waiting.pollUnsafe() ?? Exit.die("it waits")), `at operation ${operation}`)
      }
    })
  }
}
