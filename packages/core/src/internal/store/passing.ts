/**
 * What passes by itself: a restart, a failover, a lost connection, a server that loads its data. To somebody who is willing to wait it
 * is as if the lock was taken: it costs time, and nothing else.
 */
import type * as Cause from "effect/Cause"
import { LockStoreError } from "../../LockError.ts"

/**
 * A grant whose lease was over before it was known.
 */
export class GrantedTooLate extends Error {
  /** Whether the lease is shorter than a round trip may well take, so that asking again would end likewise. */
  readonly isHopeless: boolean

  constructor(tookMillis: number, leaseMillis: number) {
    super(`the lock was granted after ${Math.round(tookMillis)} ms, too late for a lease of ${leaseMillis} ms`)
    this.isHopeless = leaseMillis < shortestLeaseMillis
  }
}

const shortestLeaseMillis = 1000

/** The failure of the store after which a waiter asks again; undefined where asking again would not help. */
export const passing = (cause: Cause.Cause<unknown>): LockStoreError | undefined => {
  let failure: LockStoreError | undefined
  for (const reason of cause.reasons) {
    // of several that are asked together, the others are interrupted
    if (reason._tag === "Interrupt") continue
    if (reason._tag !== "Fail" || !(reason.error instanceof LockStoreError) || !isPassing(reason.error))
      return undefined
    failure ??= reason.error
  }
  return failure
}

export const isPassing = ({ cause, isTransient }: LockStoreError): boolean =>
  isTransient && !(cause instanceof GrantedTooLate && cause.isHopeless)

/**
 * Whether there is no use in trying again to give something back. All other refusals may pass while it is tried: that of a full disk, or
 * of a full memory, among them.
 */
export const isFinal = ({ reason }: LockStoreError): boolean =>
  reason === "WrongType" || reason === "NoPermission" || reason === "NotAuthenticated"
