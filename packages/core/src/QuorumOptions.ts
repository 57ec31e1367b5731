/**
 * Settings shared by every lock that is held on a majority of servers.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * How a lock is acquired on a majority of servers: for `RedLock.make` and `RedisLock.layerQuorum`.
 *
 * @category options
 * @since 0.2.0
 */
export interface QuorumOptions {
  /**
   * How much the clocks of the machines may differ in rate, as a share of the lease: the lock counts as held for that much less
   * than its lease, and for another 2 ms less. Default: 0.01, as in the Redlock specification.
   */
  readonly driftFactor?: number | undefined
  /**
   * How long to wait for one server's answer before it counts as failed. Default: a fiftieth of the lease, at least 100 ms and at
   * most a quarter of the lease.
   */
  readonly memberTimeout?: Duration.Input | undefined
  /**
   * The longest pause after a round in which nobody won a majority. Each pause is random, so that competing clients do not
   * split the votes again. Default: 50 milliseconds.
   */
  readonly retryDelay?: Duration.Input | undefined
}
