import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Cancellable } from "../../RedisDriver.ts"
import { report } from "../report/ownTurn.ts"

/** Waits for what calls back; an interruption gives it up. What the resumed fiber's observers throw stays out of the caller. */
export const fromCallback = <A, E>(
  begin: (resume: (effect: Effect.Effect<A, E>) => void) => Cancellable
): Effect.Effect<A, E> =>
  Effect.callback((resume) => {
    const fiber = Fiber.getCurrent()
    const ongoing = begin((effect) => {
      try {
        resume(effect)
      } catch (defect) {
        report(fiber?.context ?? Context.empty(), defect)
      }
    })
    return Effect.sync(() => ongoing.cancel())
  })
