/**
 * What Redisson's own tests verify of its fenced lock, by the numbers of the project's list of behaviours.
 *
 * Redisson's `getToken` reads the counter; here a holding has its own token, and `Lock.inspect` tells the last one.
 */
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { FencedLock, Lock } from "effect-redis-lock"
import { onBothStores, otherClient } from "./kit.ts"
import { freshName } from "../kit/names.ts"

const tokenOf = (lock: Lock.Lock, options?: Lock.AcquireOptions) =>
  Effect.scoped(Effect.map(Lock.scoped(lock, options), ({ token }) => token))

onBothStores("RFencedLock", (it) => {
  it.effect("71. the first token is 1, the next one 2", () =>
    Effect.gen(function* () {
      const lock = FencedLock.make(freshName("redisson"))
      assert.strictEqual(yield* tokenOf(lock), 1n)
      assert.strictEqual(yield* otherClient(tokenOf(lock)), 2n)
    })
  )

  it.effect("72. every way to acquire consumes a token, whether anybody looks at it or not", () =>
    Effect.gen(function* () {
      const lock = FencedLock.make(freshName("redisson"))
      yield* tokenOf(lock)
      yield* tokenOf(lock)
      const last = yield* Lock.inspect(lock).pipe(Lock.withLock(lock))
      assert.strictEqual(last.token, 3n)
      assert.strictEqual(yield* tokenOf(lock, { leaseTime: "1 minute" }), 4n)
      const tried = yield* Effect.scoped(Lock.tryScoped(lock))
      assert.strictEqual(Option.getOrThrow(tried).token, 5n)
    })
  )
})
