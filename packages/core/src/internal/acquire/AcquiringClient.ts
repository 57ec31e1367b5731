import type { PermitsClient } from "../hold/AnonymousPermits.ts"
import type { Lease, LeaseClient, LeaseEntry } from "../hold/Lease.ts"
import type { Identity } from "../hold/owner.ts"
import type { Mode } from "../protocol/LockProtocol.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"
import type { WaitingClient } from "../wait/WaitingClient.ts"
import type { LabelsOfOthers } from "../protocol/LabelsOfOthers.ts"
import type { WaitQueues } from "../wait/WaitQueues.ts"

/** A set of keys. */
interface KeySet {
  readonly has: (key: string) => boolean
  readonly set: (key: string, value: true) => void
  readonly delete: (key: string) => void
}

/** The part of the client that acquiring needs, beyond what holding and waiting need. */
export interface AcquiringClient extends LeaseClient, PermitsClient, WaitingClient {
  /** Semaphores for which a different total was logged. */
  readonly comparedTotals: Set<string>
  readonly waitQueues: WaitQueues
  readonly labels: LabelsOfOthers
  /** Locks with a request of this process in flight; of readers, which ask at the same time, the one that takes their place. */
  readonly requestsInFlight: { readonly exclusive: KeySet; readonly read: KeySet }
  readonly remember: (lease: Lease, outermost: LeaseEntry) => void
  /** The same acquisition with the least token that it may be granted, where a server that takes over might grant a lower one. */
  readonly bounded: <A>(command: StoreCommand<A>) => StoreCommand<A>
  /** Wakes waiters that may re-enter by a new hold. */
  readonly wakeOwners: (hold: LeaseEntry) => void
  /** The lease of this lock, on this side, that the identity may re-enter. */
  readonly find: (key: string, mode: Mode, identity: Identity) => Lease | undefined
  /** Every lease of the lock in this process. */
  readonly heldHere: (key: string) => ReadonlyArray<Lease>
  /** Whether a lease of this process keeps the lock from being acquired in a mode. */
  readonly isHeldHere: (key: string, mode: Mode) => boolean
}
