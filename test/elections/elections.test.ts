/**
 * Five processes campaign while leaders are killed, stopped and told to resign, and Redis is restarted. `pnpm elections` runs for longer and
 * measures how long hand-overs take.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { openElection, playFault } from "./site.ts"

it.live("Of five processes one leads at a time, whatever becomes of the leaders and of Redis", () =>
  Effect.gen(function* () {
    const site = yield* openElection()
    for (const fault of ["resign", "kill", "stop", "restart", "resign"] as const) {
      yield* playFault(site, fault, { stopMillis: 0, awayMillis: 0 })
    }
    yield* site.workingLeader
    // time for the process that was stopped to report
    yield* Effect.sleep(200)
    assert.deepStrictEqual(site.violations, [])
    // a process can be stopped between its check and its write, once per pause
    assert.isAtMost(yield* site.lateWrites, 1)
    assert.isAtLeast(site.terms, 4)
  }).pipe(Effect.scoped)
)
