import * as Effect from "effect/Effect"
import type { WaitingClient } from "../../wait/WaitingClient.ts"

/** Counts an acquisition of this kind as waiting until it ends. */
export const countWaiting = <A, E, R>(
  { telemetry }: WaitingClient,
  kind: string,
  wait: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    telemetry.waits(kind)
    return Effect.ensuring(
      wait,
      Effect.sync(() => telemetry.waited(kind))
    )
  })
