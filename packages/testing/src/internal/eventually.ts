import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { withRealClock } from "./realClock.ts"

/** Asks every 20 ms until the answer is yes; a failed question is asked again. Fails with what was expected. */
export const eventually = <E>(
  ask: Effect.Effect<boolean, unknown>,
  millis: number,
  otherwise: () => E
): Effect.Effect<void, E> =>
  Effect.catch(ask, () => Effect.succeed(false)).pipe(
    Effect.repeat({ until: (holds) => holds, schedule: Schedule.spaced(20) }),
    Effect.timeoutOrElse({ duration: millis, orElse: () => Effect.fail(otherwise()) }),
    Effect.asVoid,
    withRealClock
  )
