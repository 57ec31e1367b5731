/**
 * Closes a client when its scope closes, before its store does: it releases all holdings, in whatever order scopes close,
 * and makes its waiters fail.
 */
import * as Effect from "effect/Effect"
import type { Lease } from "../hold/Lease.ts"
import { releaseMillis, releaseUntilConfirmed } from "../hold/release.ts"
import type { LockClient } from "./LockClient.ts"

/** The interval between checks whether everything has ended; real time, since an ending process has no other. */
const tickMillis = 2

const tick = Effect.callback<void>((resume) => void setTimeout(() => resume(Effect.void), tickMillis))

/**
 * The fewest checks, so that sections have time to end, and a server that does answer to confirm their releases: a release may just have
 * given up at another server, or for another lock. Counted, as the event loop of a busy process may be late.
 */
const leastChecks = 10

/** The most names that are logged. */
const longestList = 20

/**
 * Loses all holdings, which interrupts their sections, and releases each one as soon as its section has ended:
 * concurrently, within the release timeout in real time, less what releases that gave up before have used of it. Holdings that could not be
 * released by then are logged, and become free when their leases end.
 */
export const giveBackAll = (client: LockClient): Effect.Effect<void> =>
  Effect.gen(function* () {
    const until = performance.now() + releaseMillis(client)
    const left = client.toGiveBack
    const begun = new Set<Lease>()
    // twice in a row: an acquisition that was just answered may be about to be rolled back
    for (let checks = 0, idle = 0; idle < 2 && (checks < leastChecks || performance.now() < until); checks++) {
      client.sendHome()
      client.loseAll()
      for (const held of left) {
        if (begun.has(held) || !held.isUnused) continue
        begun.add(held)
        client.background(
          Effect.andThen(
            releaseUntilConfirmed(held, held.overAt),
            Effect.sync(() => left.delete(held))
          )
        )
      }
      if (client.isBusy || left.size > 0) idle = 0
      else idle++
      if (idle < 2) yield* idle === 0 ? tick : Effect.yieldNow
    }
    if (left.size === 0) return
    const names = [...left].slice(0, longestList).map(({ name }) => name)
    yield* Effect.annotateLogs(
      Effect.logWarning(
        `A lock client was closed, and ${left.size} that it held could not be given back in time; they free themselves when their leases end.`
      ),
      { locks: left.size > longestList ? [...names, "..."] : names }
    )
  })
