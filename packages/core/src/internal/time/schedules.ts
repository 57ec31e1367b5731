import type * as Duration from "effect/Duration"
import * as Schedule from "effect/Schedule"

/** Pauses that double, up to the longest. */
export const growing = (first: Duration.Input, longest: Duration.Input): Schedule.Schedule<unknown> =>
  Schedule.min([Schedule.exponential(first), Schedule.spaced(longest)])

/** Retries after a transient failure. Not jittered: processes do not notice a failure at the same moment. */
export const reconnecting = growing("100 millis", "5 seconds")

/** Jitters an interval, so that processes do not send requests in step. */
export const jittered = (intervalMillis: number): number => intervalMillis * (0.8 + 0.4 * Math.random())
