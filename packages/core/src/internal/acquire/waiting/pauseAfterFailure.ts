import * as Effect from "effect/Effect"
import type { Restore } from "../../hold/guard.ts"
import type { Outage } from "../../wait/Outage.ts"
import type { AcquiringClient } from "../AcquiringClient.ts"

/**
 * Pauses after a transient failure, for at most the `left` milliseconds of the wait, rounded up: a clock may not tell a
 * sleep of under a nanosecond from none.
 */
export const pauseAfterFailure = (
  client: AcquiringClient,
  outage: Outage<unknown>,
  left: number,
  restore: Restore
): Effect.Effect<void> =>
  restore(Effect.sleep(Math.min(outage.pauseMillis(client.options.fallbackIntervalMillis), Math.ceil(left))))
