/**
 * Renewals that fail at an awkward moment.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Option } from "effect"
import { type AcquireError, Lock, LockLost } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore, unreachable } from "../compose/stores.ts"

describe("the watchdog", () => {
  it.effect(
    "watches the outer hold of a fixed lease although a renewal for the inner one fails after that has ended",
    () =>
      Effect.gen(function* () {
        const server = yield* testStore()
        const { run } = server.store
        const client = yield* clientOf(
          {
            ...server,
            store: {
              ...server.store,
              run: (operation, keys, args) =>
                operation === "lock/renew"
                  ? Effect.andThen(Effect.sleep(300), Effect.fail(unreachable(operation, keys[0]!)))
                  : run(operation, keys, args)
            }
          },
          { watchdogLeaseTime: 1200 }
        )
        const section = yield* Effect.sleep(500).pipe(
          Lock.withLock("a"),
          Effect.andThen(Effect.never),
          Lock.withLock("a", { leaseTime: 1000 }),
          as(client),
          Effect.forkChild
        )
        // asked for at 400, gone when the inner section ends at 500, refused at 700
        yield* TestClock.adjust(1100)
        assert.isUndefined(section.pollUnsafe())
        yield* TestClock.adjust(100)
        const exit = section.pollUnsafe()
        assert.isTrue(exit !== undefined && Exit.isFailure(exit))
        const error = Option.getOrThrow(
          Cause.findErrorOption((exit as Exit.Failure<never, AcquireError | LockLost>).cause)
        )
        assert.instanceOf(error, LockLost)
      })
  )
})
