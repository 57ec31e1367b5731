/**
 * How to acquire: the same for locks and semaphores.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * How to acquire a lock, or permits of a semaphore. Durations are Effect durations: a number is milliseconds.
 *
 * @category options
 * @since 0.3.0
 */
export interface AcquireOptions<out WaitTime extends Duration.Input | undefined = Duration.Input | undefined> {
  /**
   * The longest wait; zero to ask once. Then `LockTimeout`. The wait can be interrupted at any time. While Redis does not
   * answer, it may be exceeded by one command timeout of the driver. Default: no limit, and no `LockTimeout`.
   *
   * The wait outlives what passes by itself: a restart, a failover, a lost connection and every other `LockStoreError` whose
   * `isTransient` is true. If Redis still cannot be asked when the time is over, the wait fails with that `LockStoreError`.
   */
  readonly waitTime?: WaitTime | undefined
  /**
   * A fixed lease: the lock, or the permits, are lost when it has run out, and are never renewed. At least 3 ms, and long enough
   * that the drift (`clockDriftFactor`) leaves some of it. Default: a lease of 30 seconds (`watchdogLeaseTime`), renewed every
   * third of it until released.
   */
  readonly leaseTime?: Duration.Input | undefined
}

/**
 * `Options`, where they come before what they are for, as in `lock.pipe(Lock.scoped({ waitTime: 1000 }))`: what is `Given` must
 * have no others, as the compiler makes sure by itself where they come last.
 *
 * @category type-level
 * @since 0.3.0
 */
export type OnlyOptions<Given, Options> = Options & {
  readonly [Option in Exclude<keyof Given, keyof Options>]: `${Option & string} is not an option`
}
