import * as Effect from "effect/Effect"
import type { Ongoing } from "../RedisDriver.ts"

/** Waits for what calls back; an interruption gives it up. */
export const awaiting = <A, E>(
  begin: (resume: (effect: Effect.Effect<A, E>) => void) => Ongoing
): Effect.Effect<A, E> =>
  Effect.callback((resume) => {
    const ongoing = begin(resume)
    return Effect.sync(() => ongoing.cancel())
  })
