import * as Schedule from "effect/Schedule"

/** When to try again what is to come back by itself. Not jittered: each process has its own moment of failure. */
export const reconnecting = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])
