/**
 * The place of this client among those to whom the releases of a lock hand it over. A client has one for all its fibers that wait, under
 * the owner id with which it asks: until that owner is granted the lock, or is released.
 */
import type { HeldRef } from "../hold/releaseCommand.ts"

export interface Place {
  readonly ownerRef: HeldRef
  /** Whether this owner has asked: not yet, for a lock that a release of this client has left to its next waiter. */
  readonly hasAsked: boolean
}

/** Where a client hears that a lock was handed over to it, and that it is to ask. */
export const ownChannel = (channel: string, clientId: string): string => `${channel}:${clientId}`

/** Where all clients that take places hear that the lock is free for those that take none. */
export const oursChannel = (channel: string): string => `${channel}:ours`
