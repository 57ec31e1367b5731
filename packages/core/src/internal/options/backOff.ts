import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"

const shortestPauseMillis = 1

const problems = new WeakMap<object, InvalidLockOptions>()

/** A placeholder for an invalid schedule: if it runs all the same, it dies with the problem. */
export const invalidBackOff = (problem: InvalidLockOptions): Schedule.Schedule<never> => {
  const schedule: Schedule.Schedule<never> = Schedule.fromStep(Effect.die(problem))
  problems.set(schedule, problem)
  return schedule
}

export const checkBackOff = (schedule: unknown): InvalidLockOptions | undefined =>
  Schedule.isSchedule(schedule)
    ? problems.get(schedule)
    : new InvalidLockOptions({ option: "schedule", problem: `${shown(schedule)} is not a schedule` })

/**
 * Starts a schedule of pauses. The inner effect is the next pause in milliseconds, or undefined when the schedule has
 * ended.
 */
export const backOff = (schedule: Schedule.Schedule<unknown>): Effect.Effect<Effect.Effect<number | undefined>> =>
  Effect.map(Schedule.toStep(schedule), (step) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.matchCauseEffect(step(now, undefined), {
        // a schedule without pauses would keep the server busy
        onSuccess: ([, pause]) => Effect.succeed(Math.max(shortestPauseMillis, Duration.toMillis(pause))),
        onFailure: (cause) =>
          cause.reasons.every((reason) => reason._tag === "Fail" && Cause.isDone(reason.error))
            ? Effect.undefined
            : (Effect.failCause(cause) as Effect.Effect<never>)
      })
    )
  )
