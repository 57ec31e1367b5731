/**
 * Fencing tokens.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const tokens = ({ kind, suite, isShared, freshLock, elsewhere, holdElsewhere }: Contract): void => {
  // those of readers are tested with read-write locks
  if (isShared) return

  suite("the fencing token", (test) => {
    test("The token rises with every grant, across clients, even after a forced release", function* () {
      const lock = yield* freshLock
      const token = Effect.map(Lock.currentHolding(lock), (holding) => holding.token).pipe(Lock.withLock(lock))
      const tokens = [yield* token, yield* elsewhere(token), yield* token]
      const zombie = yield* holdElsewhere(lock)
      tokens.push(zombie.holding.token)
      assert.isTrue(yield* Lock.forceRelease(lock))
      tokens.push(yield* token)
      assert.deepStrictEqual(
        tokens,
        [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1))
      )
      assert.isTrue(tokens[0]! > 0n)
      yield* zombie.letGo
    })

    if (kind.reentrant) {
      test("The token belongs to the holding: re-entries share it", function* () {
        const lock = yield* freshLock
        yield* Effect.gen(function* () {
          const outer = yield* Lock.currentHolding(lock)
          const inner = yield* Lock.currentHolding(lock).pipe(Lock.withLock(lock))
          assert.strictEqual(inner.token, outer.token)
          assert.strictEqual(inner.owner, outer.owner)
          const state = yield* Lock.inspect(lock)
          assert.strictEqual(state.token, outer.token)
          assert.deepStrictEqual(
            state.holders.map(({ holdCount, mode, owner }) => [owner, holdCount, mode]),
            [[outer.owner, 1, kind.mode]]
          )
        }).pipe(Lock.withLock(lock))
      })
    }
  })
}
