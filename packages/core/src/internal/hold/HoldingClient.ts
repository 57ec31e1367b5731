import type * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { OwnerRef } from "../protocol/LockProtocol.ts"
import type { ProtocolClient } from "../protocol/ProtocolClient.ts"
import type { Telemetry } from "../report/telemetry.ts"
import type { OwnTurn } from "./Dependents.ts"

/** A release that may be handed to a waiter of this process. */
export interface HandOver {
  /** The command that tells other clients; empty where the lock is left to a waiter of this one. */
  readonly publish: string
  /** The reply has arrived: how many clients the release has woken to ask. */
  readonly settle: (listeners: number) => void
}

/** The part of the client that holding and releasing need. */
export interface HoldingClient extends ProtocolClient, OwnTurn {
  readonly telemetry: Telemetry
  /** Whether its store is kept by a majority of several. */
  readonly isQuorum: boolean
  /** Acquisitions and releases that are not answered yet: closing waits for them. */
  underWay: number
  /** Monotonic time in milliseconds. */
  readonly now: () => number
  /** Runs an effect in the background, until the client is closed. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber<A, E>
  /** {@link fork} for what closing waits for. */
  readonly background: <A, E>(effect: Effect.Effect<A, E>) => Fiber<A, E>
  readonly nextOwner: () => string
  /** Until when a lease requested at `sentAt` surely holds. */
  readonly deadlineOf: (sentAt: number, leaseMillis: number) => number
  /** Wakes the first waiters of a lock in this process: it may be free. */
  readonly wakeWaiters: (key: string) => void
  /**
   * A release is about to be sent: a waiter of this process may be woken before the reply. Undefined if nobody waits in it.
   */
  readonly startHandOver: (lease: ReleasedLease, now: number) => HandOver | undefined
}

/** The lock whose release may be handed over. */
export interface ReleasedLease extends OwnerRef {
  readonly client: HoldingClient
}
