/**
 * Effects that are started without a fiber, as drivers make them.
 */
import type { Effect, Exit } from "effect"
import { RedisDriver } from "effect-redis-lock"

/** An Effect that calls `start`, which calls back once. */
export const startable = <A, E>(
  start: (onExit: (exit: Exit.Exit<A, E>) => void) => RedisDriver.Cancellable
): Effect.Effect<A, E> =>
  RedisDriver.evalOf((_script, _keys, _args, onExit) => start(onExit as never))(
    undefined as never,
    [],
    []
  ) as Effect.Effect<unknown, unknown> as Effect.Effect<A, E>
