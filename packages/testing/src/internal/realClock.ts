import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const realClock = Clock.Clock.defaultValue()

/** Runs on the real clock: servers and sockets do not follow a TestClock, so waiting for them must not either. */
export const withRealClock = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(self, Clock.Clock, realClock)
