import * as Schedule from "effect/Schedule"

/** Retries after a transient failure. Not jittered: each process has its own moment of failure. */
export const reconnecting = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])

/** Jitters an interval, so that processes do not send requests in step. */
export const jittered = (intervalMillis: number): number => intervalMillis * (0.8 + 0.4 * Math.random())
