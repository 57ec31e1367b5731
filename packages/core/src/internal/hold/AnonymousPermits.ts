import type { LockRef } from "../kinds/kinds.ts"
import { maxSends } from "../store/commands.ts"
import type { Store } from "../store/Store.ts"
import { type GrantReply, Lease } from "./Lease.ts"

/** How long the marker of permits that are held lives. */
const heldMarkerMillis = 24 * 60 * 60 * 1000

/** Permits held for longer than this are given back without checking the marker. */
const trustedAfterMillis = 23 * 60 * 60 * 1000

/**
 * The shortest time that a marker outlives the last possible reply to its request: until then an acquisition with unknown
 * outcome can be taken back.
 */
const undoMillis = 60 * 1000

/** How long a marker lives: that of permits which this process gives back, or one that serves only to take back the acquisition. */
export const markerMillis = (store: Pick<Store, "commandTimeoutMillis">, isHeld: boolean): number =>
  Math.max(isHeld ? heldMarkerMillis : 0, undoMillis + maxSends * Math.ceil(store.commandTimeoutMillis))

/**
 * By how much the clock may differ in rate from the server's until a semaphore ends: NTP corrects each by half of that at most. The allowance
 * of a lease would be hours in a month, and permits that are given back in them would be lost.
 */
const driftFactor = 0.001

/** Permits without ids, which were granted together: a lease without end. */
export class AnonymousPermits extends Lease {
  readonly permits: number
  /** When their semaphore ends, on the monotonic clock. */
  readonly #endsAt: number
  #returnedAt: number | undefined = undefined

  /** `endsIn` milliseconds after the request their semaphore ends; negative: never. */
  constructor(subject: LockRef, permits: number, reply: GrantReply, now: number, endsIn: number) {
    super(subject, reply, now, Number.POSITIVE_INFINITY)
    this.permits = permits
    this.#endsAt = endsIn < 0 ? Number.POSITIVE_INFINITY : reply.sentAt + endsIn * (1 - driftFactor)
  }

  /** When they were first to be given back. */
  get #returned(): number {
    return (this.#returnedAt ??= this.client.now())
  }

  /**
   * Whether their return is trusted is decided once: to Redis all attempts must be the same. After the end of their semaphore it is not: they
   * must not count for the next one of its name.
   */
  get trustedMillis(): number {
    const returned = this.#returned
    return returned - this.askedAt > trustedAfterMillis && returned < this.#endsAt ? heldMarkerMillis : 0
  }

  override get overAt(): number {
    return this.trustedMillis === 0
      ? this.askedAt + heldMarkerMillis
      : Math.min(this.#returned + trustedAfterMillis, this.#endsAt)
  }
}
