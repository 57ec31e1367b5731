/**
 * The place of this client in Redis among the clients that a release hands the lock over to. All its waiting fibers, on each side of
 * a read-write lock, share one place, under the owner id of their requests, until that owner is granted the lock or gives up the place.
 */
import type { HeldRef } from "../hold/releaseCommand.ts"
import type { Mode } from "../protocol/LockProtocol.ts"

export interface Place {
  readonly ownerRef: HeldRef
  /** Whether this owner has sent a request; not yet if a release of this client has just left the lock to its next waiter. */
  readonly hasAsked: boolean
}

/** The channel on which a client hears that the lock was handed over to it; its next request is granted. */
export const ownChannel = (channel: string, clientId: string): string => `${channel}:${clientId}`

/** Whether a message on a client's own channel tells that the lock was handed over to it in this mode, or that permits are free. */
export const isHandOver = (mode: Mode, message: string): boolean =>
  mode === "permit" || message === (mode === "write" ? "1" : "0")

/** The channel on which all clients that take places hear that it is the turn of those that take none. */
export const oursChannel = (channel: string): string => `${channel}:ours`
