/**
 * A hold of a lock, as its holder sees it.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { InvalidLockOptions, LockLost, LockStoreError } from "./LockError.ts"

/**
 * One hold of a lock. Its validity is computed at every check, from a deadline on the monotonic clock: after a stopped
 * process, a blocked event loop or a cut network the very first check says that the lock is lost, without asking Redis.
 *
 * **Gotchas**
 *
 * No check covers the moment between itself and your next step. Where that matters, pass `token` to the resource and have
 * it refuse any token lower than the highest that it has seen (Kleppmann, "How to do distributed locking", 2016).
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
   * The fencing token: higher than that of every earlier grant of this name; that of a read lock is the last writer's, and lower
   * than the next one's. Re-entries share it. For a `MultiLock`, a record of its members' tokens by name.
   */
  readonly token: T
}

/**
 * One hold of a lock without fencing tokens (`tokens: "none"`), and what a hold of permits has in common with it.
 *
 * @category models
 * @since 0.2.0
 */
export interface HoldingWithoutToken {
  /** The name of the lock or semaphore. */
  readonly name: string
  /** `<client uuid>:<owner id>`, as written in Redis. */
  readonly owner: string
  /** Whether it is still held. Sends no command. */
  readonly isHeld: Effect.Effect<boolean>
  /** Fails with `LockLost` once it is no longer held, including after its release. Sends no command. */
  readonly ensureHeld: Effect.Effect<void, LockLost>
  /** How long the lease still runs without another renewal; zero when it is not held. A `maxHold` may end it sooner. */
  readonly remaining: Effect.Effect<Duration.Duration>
  /**
   * Why its lease was not renewed: the last renewal has failed, or is not answered. None once one has succeeded. For work that takes a
   * while to stop: the lease still runs for `remaining`, and is lost if no further renewal succeeds. Sends no command.
   */
  readonly renewalFailure: Effect.Effect<Option.Option<LockStoreError>>
  /** Waits until it is lost, then fails: for racing against your work. Never completes once it is released. */
  readonly awaitLost: Effect.Effect<never, LockLost>
  /**
   * Extends the lease to `leaseTime` from now (default: the watchdog's lease, 30 seconds), unless it already runs longer.
   * Only what has a fixed `leaseTime` needs this.
   */
  renew(leaseTime?: Duration.Input): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions>
  /**
   * Releases early; the scope's finalizer then has nothing left to do. Safe to call again. Fails with `LockLost` when it
   * was no longer held, with `LockStoreError` when Redis did not confirm the release within the release timeout:
   * further attempts then run in the background until the lease is over. That of a re-entry sends nothing while the outer
   * hold lasts, and fails only if the loss is known by then.
   */
  readonly release: Effect.Effect<void, LockLost | LockStoreError>
}

/**
 * The holding of a lock whose fencing token is a `T`, `undefined` for a lock without tokens.
 *
 * @category type-level
 * @since 0.2.0
 */
export type HoldingOf<T> = unknown extends T ? Holding<T> : [T] extends [undefined] ? HoldingWithoutToken : Holding<T>
