import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/**
 * Starts a schedule of pauses. The inner effect is the next pause in milliseconds, or undefined when the schedule has come
 * to its end.
 */
export const backOff = (schedule: Schedule.Schedule<unknown>): Effect.Effect<Effect.Effect<number | undefined>> =>
  Effect.map(Schedule.toStep(schedule), (step) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.matchCauseEffect(step(now, undefined), {
        onSuccess: ([, pause]) => Effect.succeed(Duration.toMillis(pause)),
        onFailure: (cause) =>
          cause.reasons.every((reason) => reason._tag === "Fail" && Cause.isDone(reason.error))
            ? Effect.undefined
            : (Effect.failCause(cause) as Effect.Effect<never>)
      })
    )
  )
