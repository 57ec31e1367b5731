/**
 * Locks that their holder cannot acquire again.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { nonReentrant, nonReentrantFair } from "./internal/kinds/kinds.ts"
import { makeLock } from "./internal/locks/LockImpl.ts"
import type { AcquireOptions, TokenOf, TokenOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { LockReentered, TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.2.0
 */
export interface NonReentrantOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends AcquireOptions<WaitTime> {
  /**
   * Whether waiters are served in the order of their requests, as with `FairLock`. Default: false.
   */
  readonly fair?: boolean | undefined
}

/**
 * A lock like Redisson's non-reentrant locks, plain or fair: a second acquisition by its holder (by the rules of re-entry:
 * in the same `withLock` section, fiber, scope or `withOwner`) fails at once with `LockReentered`, instead of waiting for
 * itself. Every function of `Lock` works on it.
 *
 * **When to use**
 *
 * For sections that must never run within themselves, where acquiring the lock twice can only be a mistake.
 *
 * **When not to use**
 *
 * Where functions that acquire the lock call each other: use `Lock.make`, whose holder may acquire it again.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, NonReentrantLock } from "effect-redis-lock"
 *
 * const migration = NonReentrantLock.make("migration")
 *
 * const program = Effect.log("migrate").pipe(
 *   Lock.withLock(migration),
 *   Effect.catchTag("LockReentered", (error) => Effect.logError(error.message))
 * )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <WaitTime extends Duration.Input | undefined = undefined, Tokens extends "time" | "none" = "time">(
  name: string,
  options?: NonReentrantOptions<WaitTime> & TokenOptions<Tokens>
): Lock<RedisLock, LockReentered | TimeoutOf<WaitTime>, TokenOf<Tokens>> =>
  makeLock(name, options?.fair === true ? nonReentrantFair : nonReentrant, options)
