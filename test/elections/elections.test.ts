/**
 * Five processes of which one leads, while leaders are killed, stopped and told to resign, and Redis is restarted: `pnpm elections` plays
 * longer, and tells how long hand-overs take.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { openElection, playFault } from "./site.ts"

it.live("Of five processes one leads at a time, whatever becomes of the leaders and of Redis", () =>
  Effect.gen(function* () {
    const site = yield* openElection()
    let now = yield* site.leaderAfter(0n)
    for (const fault of ["resign", "kill", "stop", "restart", "resign"] as const) {
      ;({ now } = yield* playFault(site, fault, now, { stopMillis: 0, awayMillis: 0 }))
    }
    yield* site.leaderWorks(now)
    // whoever was stopped says what it has to say
    yield* Effect.sleep(200)
    assert.deepStrictEqual(site.violations, [])
    // a process can be stopped between its check and its write: once for each pause
    assert.isAtMost(yield* site.lateWrites, 1)
    assert.isAtLeast(site.terms, 4)
  }).pipe(Effect.scoped)
)
