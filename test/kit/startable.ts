/**
 * Effects that are started without a fiber, as the commands of a store are.
 */
import { Effect, type Exit } from "effect"
import type { RedisDriver } from "effect-redis-lock"

/** As in `internal/store/startable.ts`. */
const StartKey = Symbol.for("effect-redis-lock/Start")

/** An Effect that calls `start`, which calls back once. */
export const startable = <A, E>(
  start: (onExit: (exit: Exit.Exit<A, E>) => void) => RedisDriver.Cancellable
): Effect.Effect<A, E> =>
  Object.assign(
    Effect.callback<A, E>((resume) => {
      const started = start(resume)
      return Effect.sync(() => started.cancel())
    }),
    { [StartKey]: start }
  )
