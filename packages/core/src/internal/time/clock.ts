import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Schedule from "effect/Schedule"

/** The monotonic time of a clock in milliseconds; for the default clock without its detour through big integers. */
export const monotonicMillis = (clock: Clock.Clock): (() => number) =>
  clock === Context.get(Context.empty(), Clock.Clock)
    ? () => performance.now()
    : () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Pauses that double, up to the longest. */
export const growing = (first: Duration.Input, longest: Duration.Input): Schedule.Schedule<unknown> =>
  Schedule.min([Schedule.exponential(first), Schedule.spaced(longest)])

/** Retries after a transient failure. Not jittered: processes do not notice a failure at the same moment. */
export const reconnecting = growing("100 millis", "5 seconds")

/** Jitters an interval, so that processes do not send requests in step. */
export const jittered = (intervalMillis: number): number => intervalMillis * (0.8 + 0.4 * Math.random())
