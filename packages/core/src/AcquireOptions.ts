/**
 * Options of acquiring, shared by locks and semaphores.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * Options of acquiring a lock, or permits of a semaphore. Durations are Effect durations: a number is milliseconds.
 *
 * @category options
 * @since 0.3.0
 */
export interface AcquireOptions<out WaitTime extends Duration.Input | undefined = Duration.Input | undefined> {
  /**
   * The longest wait, after which acquiring fails with `LockTimeout`; zero tries once. The wait can be interrupted at any
   * time. While Redis does not answer, the wait may be longer by one command timeout of the driver. Default: no limit, and
   * no `LockTimeout`.
   *
   * The wait outlives transient failures: a restart, a failover, a lost connection and every other `LockStoreError` whose
   * `isTransient` is true. If Redis still cannot be reached when the time is over, the wait fails with that
   * `LockStoreError`.
   */
  readonly waitTime?: WaitTime | undefined
  /**
   * A fixed lease: it is never renewed, and the lock or the permits are lost when it has run out. At least 3 ms, and long
   * enough to leave something after the drift (`clockDriftFactor`). Default: a lease of 30 seconds (`watchdogLeaseTime`),
   * renewed every third of it until released.
   */
  readonly leaseTime?: Duration.Input | undefined
}

/**
 * `Options` as the first argument, as in `lock.pipe(Lock.scoped({ waitTime: 1000 }))`: rejects excess properties of
 * `Given`, which the compiler does by itself only where options come last.
 *
 * @category type-level
 * @since 0.3.0
 */
export type OnlyOptions<Given, Options> = Options & {
  readonly [Option in Exclude<keyof Given, keyof Options>]: `${Option & string} is not an option`
}
