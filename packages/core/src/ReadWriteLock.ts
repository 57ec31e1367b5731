/**
 * Read-write locks: many readers, or one writer.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { type Preference, read, write } from "./internal/kinds/kinds.ts"
import { makeLock } from "./internal/locks/LockImpl.ts"
import { invalidIf } from "./internal/options/acquireOptions.ts"
import { shown } from "./internal/report/shown.ts"
import type { GrantOptions, TokenOf, TokenOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { LockReentered, TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Options of {@link make}; the rest are defaults for every acquisition of either lock.
 *
 * @category options
 * @since 0.2.0
 */
export interface ReadWriteOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends GrantOptions<WaitTime> {
  /**
   * Whether a reader enters while others read and a writer waits. `"writer"`: only if the reader has waited longer than the
   * writer, so that a stream of readers cannot starve writers, nor a stream of writers readers. `"reader"`: always, as in
   * Redisson. Default: `"writer"`. It is an option of readers: a `writeLock` is the same with either.
   *
   * A writer whose process has died or was stopped keeps readers out for at most 5 seconds. Only clients of this library
   * know of waiting writers: readers in Java always enter.
   */
  readonly preference?: Preference | undefined
}

/**
 * The two locks of a name. `T` is the fencing token of both, `E` the failures of acquiring either beyond those that every
 * lock has.
 *
 * @category models
 * @since 0.2.0
 */
export interface ReadWriteLock<out T = bigint, out E = never> {
  /**
   * Shared by any number of owners while nobody writes. Its token is that of the last writer; if Redis remembers none, a
   * token higher than those of all earlier writers. On a quorum it may be higher in any case. It is lower than the next
   * writer's.
   */
  readonly readLock: Lock<RedisLock, E, T>
  /** Held by one owner while nobody reads. Fails with `LockReentered` for an owner that reads: see {@link make}. */
  readonly writeLock: Lock<RedisLock, LockReentered | E, T>
}

/**
 * A read-write lock like Redisson's `RReadWriteLock`. Every function of `Lock` works on both sides. `Lock.isLocked`,
 * `Lock.remainingTime` and `Lock.forceRelease` apply to the side that they are given; `Lock.inspect` shows both.
 *
 * Both sides are reentrant. A writer may read as well, and keeps reading if it releases the write lock first: other readers
 * can enter from then on. A reader cannot become a writer: two readers that tried would wait for each other, so the attempt
 * fails at once with `LockReentered`.
 *
 * Every reader has a lease of its own: one whose process has died keeps writers out until its own lease has run out, and no
 * longer.
 *
 * **Gotchas**
 *
 * With `preference: "writer"`, a reader that waits for another reader can deadlock behind a queued writer. Within a
 * `Lock.withLock` section, or under `Lock.withOwner`, all fibers are one reader.
 *
 * **When not to use**
 *
 * For reads that take less than a few milliseconds: a read lock costs two round trips, like any lock.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, ReadWriteLock } from "effect-redis-lock"
 *
 * const { readLock, writeLock } = ReadWriteLock.make("catalogue")
 *
 * const read = Effect.log("prices").pipe(Lock.withLock(readLock))
 * const change = Effect.log("new prices").pipe(Lock.withLock(writeLock, { waitTime: "10 seconds" }))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <WaitTime extends Duration.Input | undefined = undefined, Tokens extends "time" | "none" = "time">(
  name: string,
  options?: ReadWriteOptions<WaitTime> & TokenOptions<Tokens>
): ReadWriteLock<TokenOf<Tokens>, TimeoutOf<WaitTime>> => {
  const preference = options?.preference ?? "writer"
  const isPreference = preference === "writer" || preference === "reader"
  const problem = isPreference ? undefined : `${shown(preference)} is neither "writer" nor "reader"`
  const invalid = invalidIf("preference", problem)
  return {
    readLock: makeLock(name, read(preference), options, invalid),
    writeLock: makeLock(name, write, options, invalid)
  }
}
