import type * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { OwnerRef } from "../protocol/LockProtocol.ts"
import type { ProtocolClient } from "../protocol/ProtocolClient.ts"
import type { Telemetry } from "../report/telemetry/telemetry.ts"
import type { OwnTurn } from "./Dependents.ts"

/** A release that may hand the lock to a waiter of this process. */
export interface HandOver {
  /** The command that notifies other clients; empty if the lock is left to a waiter of this one. */
  readonly publish: string
  /** Called with the reply: the number of clients that the release has woken. */
  readonly settle: (listeners: number) => void
}

/** The part of the client that holding and releasing need. */
export interface HoldingClient extends ProtocolClient, OwnTurn {
  readonly telemetry: Telemetry
  /** Whether its store is kept by a majority of several. */
  readonly isQuorum: boolean
  /** The number of unanswered acquisitions and releases: closing waits for them. */
  underWay: number
  /** Monotonic time in milliseconds. */
  readonly now: () => number
  /** Runs an effect in the background, until the client is closed. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber<A, E>
  /** {@link fork} for what closing waits for. */
  readonly background: <A, E>(effect: Effect.Effect<A, E>) => Fiber<A, E>
  readonly nextOwner: () => string
  /** Until when a lease requested at `sentAt` is certain to hold. */
  readonly deadlineOf: (sentAt: number, leaseMillis: number) => number
  /** Wakes the first waiters of a lock in this process: it may be free. */
  readonly wakeWaiters: (key: string) => void
  /**
   * Called before a release is sent: it may wake a waiter of this process before the reply. Undefined if none waits.
   */
  readonly startHandOver: (lease: ReleasedLease, now: number) => HandOver | undefined
}

/** The lock whose release may be handed over. */
export interface ReleasedLease extends OwnerRef {
  readonly client: HoldingClient
}
