/**
 * Settings shared by every lock that is held on a majority of servers.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

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
