/**
 * A request that a quorum gives up before a member has answered, to a store that says nothing more of what was given up, as drivers do.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { startable } from "../../packages/core/dist/internal/store/startable.js"
import { runOperation } from "../kit/storeOperations.ts"
import { as, quorumOf, type TestStore, testStores } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

it.effect("A request that was given up and arrives late leaves nothing at its member", () =>
  Effect.gen(function* () {
    const stores = yield* testStores(3)
    const [first, second, third] = stores as [TestStore, TestStore, TestStore]
    for (const { store } of [first, second]) {
      yield* runOperation(store, "lock/acquire", ["a", "a:token"], ["somebody:1", 60_000, 60_000])
    }
    const context = yield* Effect.context<never>()
    const late = wrappedStore(third.store, ({ operation, run }) =>
      operation === "lock/acquire"
        ? startable(() => {
            Effect.runForkWith(context)(Effect.delay(run(), "500 millis"))
            return { cancel: () => {} }
          })
        : run()
    )
    const service = yield* quorumOf([first, second, { ...third, store: late }])
    const asked = yield* Effect.forkChild(
      Effect.exit(as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "1 hour", waitTime: 0 })))
    )
    yield* TestClock.adjust("501 millis")
    assert.isTrue(Exit.isFailure(yield* Fiber.join(asked)))
    assert.isFalse(yield* third.isFree("a"))
    yield* TestClock.adjust("5 seconds")
    assert.isTrue(yield* third.isFree("a"))
  })
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
