/**
 * A request that a quorum gives up before a member has answered, to a store that says nothing more of what was given up, as drivers do.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { lateGrantLeavesNothing } from "../kit/lateGrant.ts"
import { startable } from "../kit/startable.ts"
import { as, quorumOf, testStores } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

it.effect("A request that was given up and arrives late leaves nothing at its member", () =>
  Effect.flatMap(Effect.context<never>(), (context) =>
    lateGrantLeavesNothing((run) =>
      startable(() => {
        Effect.runForkWith(context)(Effect.delay(run(), "500 millis"))
        return { cancel: () => {} }
      })
    )
  )
)

it.effect("A request that was given up, but acted before the release, is not released once more", () =>
  Effect.gen(function* () {
    const stores = yield* testStores(3)
    const third = stores[2]!
    const mute = wrappedStore(third.store, ({ operation, run }) =>
      operation === "lock/acquire"
        ? startable(() => {
            // it acts at once, and its reply is still on its way when the lock is released
            Effect.runSync(run())
            return { cancel: () => {} }
          })
        : run()
    )
    const service = yield* quorumOf([stores[0]!, stores[1]!, { ...third, store: mute }])
    yield* as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "1 hour" }))
    assert.isTrue(yield* third.isFree("a"))
    const { length } = third.operations
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(third.operations.length, length)
  })
)
