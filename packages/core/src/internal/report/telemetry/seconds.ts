import * as Duration from "effect/Duration"

/** The text of a duration in messages. */
export const seconds = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  return millis < 1000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`
}
