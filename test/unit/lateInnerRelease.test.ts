/**
 * The release of a reader's inner hold that arrives when nobody waits for its reply any more.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, References } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { type Outcome, wrappedStore } from "../kit/wrappedStore.ts"
import { background } from "../kit/background.ts"
import { pass } from "../kit/passTime.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

describe("a late release of an inner hold", () => {
  it.effect(
    "A late release of a reader's inner hold does not end a later re-entry, which a writer would take for gone",
    () =>
      Effect.gen(function* () {
        const server = yield* testStore()
        const late: Array<Outcome> = []
        const store = wrappedStore(server.store, ({ fail, operation, run }) => {
          if (late.length > 0 || operation !== "read_lock/remove_hold") return run()
          late.push(run())
          return fail("ConnectionLost")
        })
        const reader = as(yield* clientOf({ store }))
        const writer = as(yield* clientOf(server))
        const entered = yield* Deferred.make<void>()
        const reading = yield* background(
          reader(
            Effect.gen(function* () {
              yield* Effect.ignore(Lock.withLock(Effect.void, readLock, { leaseTime: "1 minute" }))
              yield* Effect.andThen(Deferred.succeed(entered, undefined), Effect.never).pipe(
                Lock.withLock(readLock, { leaseTime: "1 minute" })
              )
            }).pipe(Lock.withLock(readLock, { leaseTime: "5 seconds" }))
          )
        )
        while (late.length === 0) yield* pass(0.1)
        // as late as it may come
        yield* pass(server.store.commandLifeMillis / 1000 - 0.2)
        yield* late[0]!
        while (!(yield* Deferred.isDone(entered))) yield* pass(0.1)
        // longer than the outer lease
        yield* pass(6)
        assert.isUndefined(reading.pollUnsafe())
        const writing = yield* writer(Lock.withLockIfAvailable(Effect.void, writeLock))
        assert.strictEqual(writing._tag, "None", "a reader holds the lock still")
        yield* Fiber.interrupt(reading)
      }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))
  )
})
