import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { command, StepFailed } from "./command.ts"
import { withRealClock } from "./realClock.ts"

const PATIENCE_MILLIS = 30_000

/** Asks every 20 ms until the answer is yes, for 30 seconds; a failed question is asked again. */
export const eventually = (state: string, ask: Effect.Effect<boolean, unknown>): Effect.Effect<void, StepFailed> =>
  Effect.catch(ask, () => Effect.succeed(false)).pipe(
    Effect.repeat({ until: (holds) => holds, schedule: Schedule.spaced(20) }),
    Effect.timeoutOrElse({
      duration: PATIENCE_MILLIS,
      orElse: () => Effect.fail(new StepFailed({ message: `This state was not reached: ${state}.` }))
    }),
    Effect.asVoid,
    withRealClock
  )

/** Waits until replicas are in sync with their masters. */
export const inSync = (replicas: ReadonlyArray<Parameters<typeof command>[0]>) =>
  Effect.forEach(
    replicas,
    (replica) => {
      const isInSync = Effect.map(command(replica, "INFO", "replication"), (info) =>
        /master_link_status:up/.test(String(info))
      )
      return eventually("every replica is in sync", isInSync)
    },
    { discard: true }
  )
