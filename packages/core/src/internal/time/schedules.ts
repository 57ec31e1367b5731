import * as Schedule from "effect/Schedule"

/** When to try again what is to come back by itself. Not jittered: each process has its own moment of failure. */
export const reconnecting = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])

/** When to try again a release that nobody waits for. */
export const releaseRetries = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])

/** An interval that differs from process to process and from time to time, so that they do not ask together. */
export const jittered = (intervalMillis: number): number => intervalMillis * (0.8 + 0.4 * Math.random())
