/**
 * Options of acquiring: those that locks and semaphores share, and those of a quorum.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * How long to wait, and how long to hold. Durations are Effect durations: a number is milliseconds.
 *
 * @category options
 * @since 0.3.0
 */
export interface TimeOptions<out WaitTime extends Duration.Input | undefined = Duration.Input | undefined> {
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
   * A fixed lease: it is never renewed, and the lock or the permits are lost when it has run out. At least 3 ms. With less
   * than a second, a single reply that takes longer than the lease ends the wait, with `TimedOut`. Default: a lease of 30 seconds (`watchdogLeaseTime`),
   * renewed every third of it until released.
   */
  readonly leaseTime?: Duration.Input | undefined
  /**
   * How long the watchdog renews it at most, counted from the outermost acquisition, whose `maxHold` is the one that
   * counts (a re-entry's own is ignored): after that it is lost, with the reason `HeldTooLong`, and its section is interrupted.
   * It is released when the section's finalizers are done, or when its lease ends; by a `scoped` acquisition when the scope
   * closes. Infinity lifts the limit. No effect with `leaseTime`, which is a limit itself. Default: the `maxHold` of the client,
   * which is none by default.
   */
  readonly maxHold?: Duration.Input | undefined
}

/**
 * Options of acquiring a read-write lock, a `MultiLock`, or permits of a semaphore.
 *
 * @category options
 * @since 0.3.0
 */
export interface GrantOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends TimeOptions<WaitTime> {
  /**
   * What a grant needs besides the master's reply in order to count; `"none"` for nothing. Default: the `acknowledge` of the
   * client, which is nothing by default. The functions of `Lock` that try only once have no such option: set it when making the lock, or on
   * the client.
   */
  readonly acknowledge?: AcknowledgeOptions | "none" | undefined
}

/**
 * Options of acquiring a lock.
 *
 * @category options
 * @since 0.3.0
 */
export interface AcquireOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends GrantOptions<WaitTime> {
  /**
   * The shortest time before the lock is free again, counted from its acquisition, like ShedLock's `lockAtLeastFor`. A lock that is
   * released earlier stays held in Redis for the rest of that time. The release itself returns at once, and no owner has the
   * lock from then on. When the time is over, the client frees it, and the process that has waited longest gets it; if the client has been
   * closed or cut off by then, the lock frees itself 100 ms later. Until then its holder in Redis is `<owner>:kept`, and
   * `Lock.forceRelease` frees it. Not longer than a fixed `leaseTime`. Of several acquisitions by one owner, the one whose time
   * ends last counts. Default: none.
   *
   * If the process dies, the lock is free when its lease ends, even if that is earlier: another instance can do the work.
   *
   * Only for exclusive locks on one server (or cluster). For one side of a read-write lock, a `MultiLock` or a lock on a quorum,
   * acquiring fails with `InvalidLockOptions` where the compiler does not reject it already.
   */
  readonly minHold?: Duration.Input | undefined
}

/**
 * The option that turns fencing tokens off.
 *
 * @category options
 * @since 0.3.0
 */
export interface TokenOptions<out Tokens extends "time" | "none" = "time" | "none"> {
  /**
   * `"time"`: each grant has a token, at least the server's time in microseconds. `"none"`: the `Holding` has no `token`, and the lock leaves
   * nothing in Redis when it is free. With tokens, the last one of each name stays for `tokenRetention` (24 hours unless the layer says
   * otherwise), about 150 bytes a name: see docs/memory.md. Default: `"time"`.
   *
   * Do not turn them off where the resource checks `Holding.token`, or under a name that others lock with tokens: their tokens then rise
   * only with the server's clock.
   */
  readonly tokens?: Tokens | undefined
}

/**
 * The type of the tokens that a value of the option `tokens` stands for.
 *
 * @category type-level
 * @since 0.3.0
 */
export type TokenOf<Tokens> = Tokens extends "none" ? undefined : bigint

/**
 * Makes a grant count only once enough replicas have it. Otherwise it is rolled back, and acquiring fails with a `LockStoreError`
 * whose reason is `NotReplicated`, and whose `cause` is a `LockNotReplicated`; or, if a server refuses to confirm it, with the reason
 * for that. This covers every way of acquiring a lock or leased permits, re-entry included (one that is not acknowledged fails, and the outer hold stays as it is); renewals and
 * releases do not wait.
 *
 * **Details**
 *
 * Redis replicates asynchronously: the master replies before any replica has the grant, and if it dies then, the replica that
 * takes over grants the lock again. With this option, a second connection confirms that the master has the grant, and waits there by
 * `WAIT`. Grants of the same moment share one such wait, and locks without this option are not held up.
 *
 * **Gotchas**
 *
 * A replica that lacks the grant may still be promoted unless all of them have acknowledged it; and `WAIT` is no consensus protocol: a master
 * that is cut off together with its clients can go on granting to them. See docs/failover.md for which setting survives which
 * failure. Have what the lock guards check the fencing token as well.
 *
 * **When not to use**
 *
 * On a server without replicas, and with a driver that has no connections of its own (`RedisDriver.layerRedis`): it is refused.
 *
 * @category options
 * @since 0.3.0
 */
export interface AcknowledgeOptions {
  /**
   * How many replicas must have the grant: a number of at least 1, or `"all"` or `"majority"` (more than
   * half) of those that the master reports as online at the time, and at least one.
   */
  readonly replicas: number | "all" | "majority"
  /**
   * How long to wait for them; up to twice as long for a grant that first has to wait for an earlier one. It should be a small
   * fraction of the lease. At most a day. Default: 500 milliseconds.
   */
  readonly within?: Duration.Input | undefined
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

/**
 * Options of acquiring a lock on a majority of servers, for `RedLock.make` and `RedisLock.layerQuorum`.
 *
 * @category options
 * @since 0.2.0
 */
export interface QuorumOptions {
  /**
   * How long to wait at most for a server's answer before the server counts as failed. Default: a fiftieth of the lease, at
   * least a second and at most a quarter of the lease.
   */
  readonly memberTimeout?: Duration.Input | undefined
  /**
   * The longest pause after a round without a majority for anybody. Each pause is random, so that competing clients do not
   * split the votes again. Default: 50 milliseconds.
   */
  readonly retryDelay?: Duration.Input | undefined
}
