/**
 * What a client does when its scope closes, before the store goes: it gives back what it holds, whatever order scopes close in, and
 * sends home whoever waits.
 */
import * as Effect from "effect/Effect"
import type { AnonymousPermits } from "../hold/AnonymousPermits.ts"
import { Lease } from "../hold/Lease.ts"
import { releaseOf } from "../hold/releaseCommand.ts"
import { releaseUntilConfirmed } from "../hold/repeatedRelease.ts"
import type { HoldingClient } from "../hold/HoldingClient.ts"

/** Something that is held, and can be given back by the client itself. */
export type Returnable = Lease | AnonymousPermits

/** What closing needs of the client. */
interface ClosingClient extends Pick<HoldingClient, "options" | "background"> {
  readonly toGiveBack: Set<Returnable>
  readonly sendHome: () => void
  readonly loseAll: () => void
  /** Whether something is still to be answered, or to be taken back. */
  readonly isBusy: boolean
}

const giveBack = (held: Returnable): Effect.Effect<unknown> =>
  held instanceof Lease ? releaseUntilConfirmed(releaseOf(held, held.overAt)) : held.returnUntilConfirmed

/** How often to look whether all has ended; real time, as a process that ends has no other. */
const tickMillis = 2

const tick = Effect.callback<void>((resume) => void setTimeout(() => resume(Effect.void), tickMillis))

/** So many names at most are logged. */
const longestList = 20

/**
 * Loses all that is held, which interrupts its sections, and gives it back as soon as nobody works under it: all at once, within
 * the release timeout. What is still not given back then is reported, and frees itself when its lease ends.
 */
export const giveBackAll = (client: ClosingClient): Effect.Effect<void> =>
  Effect.gen(function* () {
    const until = performance.now() + client.options.releaseTimeoutMillis
    const left = client.toGiveBack
    const begun = new Set<Returnable>()
    // twice in a row: an acquisition that was just answered may be about to be taken back
    for (let idle = 0; idle < 2 && performance.now() < until;) {
      client.sendHome()
      client.loseAll()
      for (const held of left) {
        if (begun.has(held) || !held.isUnused) continue
        begun.add(held)
        client.background(
          Effect.andThen(
            giveBack(held),
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
