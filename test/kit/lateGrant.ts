/**
 * A quorum's request that two members deny, and that the third one grants only after it was given up.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { runOperation } from "./storeOperations.ts"
import { as, quorumOf, type TestStore, testStores } from "./testStore.ts"
import { type Outcome, wrappedStore } from "./wrappedStore.ts"

/** Nothing of it stays at the third member, whose store never answers and runs the request half a second later: `late`. */
export const lateGrantLeavesNothing = (late: (run: () => Outcome) => Outcome) =>
  Effect.gen(function* () {
    const stores = yield* testStores(3)
    const [first, second, third] = stores as [TestStore, TestStore, TestStore]
    for (const { store } of [first, second]) {
      yield* runOperation(store, "lock/acquire", ["a", "a:token"], ["somebody:1", 60_000, 60_000])
    }
    const store = wrappedStore(third.store, ({ operation, run }) => (operation === "lock/acquire" ? late(run) : run()))
    const service = yield* quorumOf([first, second, { ...third, store }])
    const asked = yield* Effect.forkChild(
      Effect.exit(as(service)(Lock.withLock(Effect.void, "a", { leaseTime: "1 hour", waitTime: 0 })))
    )
    yield* TestClock.adjust("501 millis")
    assert.isTrue(Exit.isFailure(yield* Fiber.join(asked)))
    assert.isFalse(yield* third.isFree("a"))
    yield* TestClock.adjust("5 seconds")
    assert.isTrue(yield* third.isFree("a"))
  })
