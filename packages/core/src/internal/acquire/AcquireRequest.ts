import type { Acknowledgement } from "../options/acknowledge.ts"
import type { Identity } from "../hold/owner.ts"
import type { LockProtocol } from "../protocol/LockProtocol.ts"
import type { LockKeys } from "../store/keys.ts"
import type { AcquiringClient } from "./AcquiringClient.ts"

/** One request for one lock, validated. */
export interface AcquireRequest {
  readonly client: AcquiringClient
  readonly kind: LockProtocol
  readonly name: string
  readonly keys: LockKeys
  readonly identity: Identity
  /** Milliseconds; infinite to wait without limit. */
  readonly waitMillis: number
  /** Milliseconds, or undefined for a lease that the watchdog renews. */
  readonly leaseMillis: number | undefined
  /** For how long the lock is taken at least, milliseconds; absent for permits. */
  readonly minHoldMillis?: number
  /** Whether it is the request of a `MultiLock`, which waits briefly and repeatedly: its timeout is not the caller's. */
  readonly isMember?: boolean | undefined
  /** What the grant needs in order to count; undefined for the client's own setting. */
  readonly acknowledge: Acknowledgement | "none" | undefined
}
