import type { Acknowledgement } from "./acknowledge.ts"

/**
 * The options of a client, checked; milliseconds.
 */
export interface ClientOptions {
  readonly watchdogLeaseMillis: number
  readonly renewIntervalMillis: number
  readonly fallbackIntervalMillis: number
  /** How often a client with waiters of a fair lock reports, and how long their places outlive its last report. */
  readonly placeIntervalMillis: number
  readonly placeLifeMillis: number
  readonly releaseTimeoutMillis: number
  readonly subscriptionIdleMillis: number
  readonly clockDriftFactor: number
  /** How long the last fencing token of a name is remembered beyond the lease. */
  readonly tokenRetentionMillis: number
  readonly keyPrefix: string
  /** For people to recognise the client by; empty for none. */
  readonly label: string
  /** What a grant needs in order to count, unless its request says otherwise. */
  readonly acknowledge: Acknowledgement | undefined
}
