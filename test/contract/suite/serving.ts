/**
 * Every process is served, however many fibers of another one want the lock.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

/** A process has at most eight sections in a row that it hands over to itself, beside the one that runs when another process asks. */
const mostSections = 9

export const serving = ({ elsewhere, freshLock, kind, rival, suite, succeeded, until, virtual }: Contract): void => {
  // a lock that polls promises no turn
  if (kind.polls === true) return
  suite("being served", (test) => {
    for (const fibers of [2, 3, 5]) {
      test(`Another process is served while ${fibers} fibers of one process take turns without end`, function* () {
        const lock = yield* freshLock
        let sections = 0
        const section = Effect.andThen(
          Effect.sync(() => sections++),
          Effect.sleep(virtual ? 100 : 10)
        )
        const turns = Effect.forever(Effect.andThen(Lock.withLock(section, lock), Effect.sleep(5)))
        for (let i = 0; i < fibers; i++) yield* Effect.forkScoped(turns)
        yield* until(Effect.sync(() => sections > 3))
        const before = sections
        const waiter = yield* Effect.sync(() => sections - before).pipe(
          Lock.withLock(rival(lock)),
          elsewhere,
          Effect.forkScoped({ startImmediately: true })
        )
        // real messages may come late: then it is served by its second chance, or its third
        const bound = virtual ? mostSections : 4 * mostSections
        yield* until(Effect.sync(() => waiter.pollUnsafe() !== undefined || sections - before > bound))
        assert.isAtMost(sections - before, bound, "sections before it was served")
        assert.isAtMost(yield* succeeded(waiter), bound)
      })
    }
  })
}
