import * as Clock from "effect/Clock"
import * as Context from "effect/Context"

/** The monotonic time of a clock in milliseconds; for the default clock without its detour through big integers. */
export const monotonicMillis = (clock: Clock.Clock): (() => number) =>
  clock === Context.get(Context.empty(), Clock.Clock)
    ? () => performance.now()
    : () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
