/**
 * The loop of everybody who waits, for a lock, a fair turn, permits or a latch: sleep until there is something to do, do it, until it has
 * served the waiter or the wait is over. What wakes it, and what it does then, differs.
 */
import * as Effect from "effect/Effect"
import type { Restore } from "../hold/guard.ts"

export interface Wait<A, E> {
  readonly restore: Restore
  /** Sleeps until there is something to do. May end for no reason. */
  readonly sleep: () => Effect.Effect<void>
  /** Does what there is to do: undefined if that has not served the waiter. */
  readonly attempt: () => Effect.Effect<A | undefined, E>
  readonly isOver: () => boolean
  /** How the wait ends without success. */
  readonly gaveUp: () => Effect.Effect<A, E>
}

export const untilServed = Effect.fnUntraced(function* <A, E>(wait: Wait<A, E>): Effect.fn.Return<A, E> {
  while (true) {
    yield* wait.restore(wait.sleep())
    const served = yield* wait.attempt()
    if (served !== undefined) return served
    if (wait.isOver()) return yield* wait.gaveUp()
  }
})
