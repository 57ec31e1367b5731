/**
 * What Redis knows of a lock.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"

/**
 * What Redis knows of a held lock.
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
  /** How long the lease still runs; absent where the key has no expiry. */
  readonly remaining: Duration.Duration | undefined
  /** The last fencing token of the name; absent where only Java clients ever held the lock. */
  readonly token: bigint | undefined
}
