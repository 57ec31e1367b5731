/**
 * What you have while you hold a lock.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { InvalidLockOptions, LockLost, LockStoreError } from "./LockError.ts"

/**
 * One hold of a lock. Its validity is computed whenever you ask, from a deadline on the monotonic clock: after a stopped
 * process, a blocked event loop or a cut network the very first check says that the lock is lost, without asking Redis.
 *
 * **Gotchas**
 *
 * No check can cover the moment between itself and your next step. Where that matters, hand `token` to the resource and
 * let it refuse any token lower than the highest it has seen (Kleppmann, "How to do distributed locking", 2016).
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const writeChunk = (chunk: string, token: bigint) => Effect.log(`${chunk} as ${token}`)
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const holding = yield* Lock.scoped("report")
 *   for (const chunk of ["a", "b", "c"]) {
 *     yield* holding.ensureHeld
 *     yield* writeChunk(chunk, holding.token)
 *   }
 * }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Holding<out T = bigint> extends HoldingWithoutToken {
  /**
   * The fencing token: higher than that of every earlier grant of this name. Re-entries share it. Of a `MultiLock`, a record of
   * its members' tokens by name.
   */
  readonly token: T
}

/**
 * What you have while you hold a lock without fencing tokens (`tokens: "none"`).
 *
 * @category models
 * @since 0.2.0
 */
export interface HoldingWithoutToken {
  /** The lock's name. */
  readonly name: string
  /** `<client uuid>:<owner id>`, as it stands in Redis. */
  readonly owner: string
  /** Whether the lock is still held. Asks nobody. */
  readonly isHeld: Effect.Effect<boolean>
  /** Fails with `LockLost` once the lock is no longer held, also after it was released. Asks nobody. */
  readonly ensureHeld: Effect.Effect<void, LockLost>
  /** How long the lock is certainly held without another renewal; zero when it is not. */
  readonly remaining: Effect.Effect<Duration.Duration>
  /** Waits until the lock is lost, then fails: for racing against your work. Never ends once the lock is released. */
  readonly awaitLost: Effect.Effect<never, LockLost>
  /**
   * Extends the lease to `leaseTime` from now (default: the watchdog's lease, 30 seconds), unless it runs longer anyway.
   * Only locks with a fixed `leaseTime` need it.
   */
  readonly renew: (leaseTime?: Duration.Input) => Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions>
  /**
   * Releases early; the scope's finalizer then has nothing left to do. Safe to call again. Fails with `LockLost` when the
   * lock turned out not to be ours, with `LockStoreError` when Redis could not be told within the release timeout: the
   * attempts then go on in the background until the lease is over.
   */
  readonly release: Effect.Effect<void, LockLost | LockStoreError>
}

/**
 * What you have while you hold a lock whose fencing token is a `T`: `undefined` where there is none.
 *
 * @category type-level
 * @since 0.2.0
 */
export type HoldingOf<T> = unknown extends T ? Holding<T> : [T] extends [undefined] ? HoldingWithoutToken : Holding<T>
