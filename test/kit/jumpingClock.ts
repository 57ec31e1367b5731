/**
 * A monotonic clock that jumps ahead of all timers, as it does for a process that was stopped, or whose event loop was blocked.
 */
import { Clock, Effect } from "effect"

/** The clock of the test, which `jump` sets ahead for what runs `on` it. */
export const jumpingClock = Effect.map(Clock.Clock, (clock) => {
  let ahead = 0n
  const jumped: Clock.Clock = Object.create(clock, {
    monotonicTimeNanosUnsafe: { value: () => clock.monotonicTimeNanosUnsafe() + ahead }
  })
  return {
    on: Effect.provideService(Clock.Clock, jumped),
    jump: (millis: number) => Effect.sync(() => void (ahead += BigInt(millis) * 1_000_000n))
  }
})
