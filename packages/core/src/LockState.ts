/**
 * The state of a lock in Redis.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * The state of a held lock in Redis.
 *
 * @category models
 * @since 0.1.0
 */
export interface LockState {
  readonly name: string
  /** `read` and `write` are the sides of a read-write lock. */
  readonly holders: ReadonlyArray<{
    readonly owner: string
    readonly holdCount: number
    readonly mode: "exclusive" | "read" | "write"
  }>
  /** How long the lease still runs; absent if the key has no expiry. */
  readonly remaining: Duration.Duration | undefined
  /** The last fencing token of the name; absent if only Java clients have ever held the lock. */
  readonly token: bigint | undefined
}
