/**
 * A lock in the hands of this process: one outermost acquisition with all re-entries into it. Whether it still holds is
 * computed from a deadline on the monotonic clock whenever somebody asks, never remembered.
 */
import * as Duration from "effect/Duration"
import { LockLost, type LossReason } from "../LockError.ts"
import type { Acquisition } from "./acquisition.ts"
import type { Due } from "./DueQueue.ts"
import type { Hold } from "./Hold.ts"
import type { LockKeys } from "./keys.ts"
import type { LockClient } from "./LockClient.ts"
import type { Claim, LockKind } from "./LockKind.ts"
import type { Identity } from "./owner.ts"

export class Possession implements Due, Claim {
  readonly client: LockClient
  readonly kind: LockKind
  readonly name: string
  readonly keys: LockKeys
  readonly owner: string
  readonly token: number
  readonly acquiredBy: Identity
  readonly acquiredAt: number

  /** Monotonic milliseconds until which Redis keeps the lock for us, less the drift allowance. */
  deadline: number
  /** The outermost hold. */
  outermost: Hold | undefined = undefined
  /** Holds, re-entries included. */
  holds = 1
  /** Holds without a fixed lease: while there are any, the watchdog renews. */
  renewedHolds = 0
  /** Set once, when it turns out that the lock is held no more. */
  lost: LockLost | undefined = undefined
  /** Set when the last hold has begun to release. */
  released = false
  /** The last failure of the renewal since it last succeeded. */
  renewalFailure: unknown = undefined

  due = 0
  place = -1
  /** The holds of a reader and when each ends, in the order of their numbers in Redis; all other kinds have one deadline. */
  readonly #readHolds: Array<{ readonly hold: Hold; deadline: number }> | undefined
  #listeners: Set<() => void> | undefined = undefined

  constructor(acquisition: Acquisition, owner: string, token: number, acquiredAt: number, deadline: number) {
    this.client = acquisition.client
    this.kind = acquisition.kind
    this.name = acquisition.name
    this.keys = acquisition.keys
    this.acquiredBy = acquisition.identity
    this.owner = owner
    this.token = token
    this.acquiredAt = acquiredAt
    this.deadline = deadline
    this.#readHolds = this.kind.mode === "read" ? [] : undefined
  }

  /** The loss, if the lock is lost: noticed earlier, or just now because the deadline has passed. */
  checkLost(now: number): LockLost | undefined {
    if (this.lost === undefined && !this.released && now >= this.deadline) {
      this.lose(this.renewalFailure === undefined ? "Expired" : "RenewalFailed", now)
    }
    return this.lost
  }

  isHeld(now: number): boolean {
    return !this.released && this.checkLost(now) === undefined
  }

  /** Records the loss, stops the renewal and tells everybody who depends on the lock. */
  lose(reason: LossReason, now: number): LockLost {
    if (this.lost !== undefined) return this.lost
    const lost = (this.lost = this.lossOf(reason, now))
    this.client.forget(this)
    this.client.telemetry.lost(this, reason)
    this.client.telemetry.released(this, now - this.acquiredAt)
    if (this.#listeners !== undefined) {
      for (const listener of this.#listeners) this.client.inOwnTurn(listener)
      this.#listeners = undefined
    }
    this.client.signal(this.keys.lock)
    return lost
  }

  lossOf(reason: LossReason, now: number): LockLost {
    return new LockLost({
      lock: this.name,
      owner: this.owner,
      reason,
      late: Duration.millis(Math.max(0, now - this.deadline)),
      ...(this.renewalFailure === undefined ? undefined : { cause: this.renewalFailure })
    })
  }

  /** Calls back once, in a turn of its own, when the lock is lost or if it is already; the result withdraws. */
  onLost(listener: () => void): () => void {
    if (this.lost !== undefined) {
      this.client.inOwnTurn(listener)
      return () => {}
    }
    const listeners = (this.#listeners ??= new Set())
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  /** Raises the deadline after Redis confirmed a lease for all holds that was asked for at `sentAt`; never lowers it. */
  extend(sentAt: number, leaseMillis: number): void {
    const deadline = this.client.deadlineOf(sentAt, leaseMillis)
    if (this.#readHolds !== undefined) {
      for (const each of this.#readHolds) each.deadline = Math.max(each.deadline, deadline)
    }
    this.deadline = Math.max(this.deadline, deadline)
  }

  /** Redis granted or confirmed a hold until a deadline. */
  entered(hold: Hold, deadline: number): void {
    this.#readHolds?.push({ hold, deadline })
    this.deadline = Math.max(this.deadline, deadline)
  }

  /** A hold ends, and what it kept of a reader's lease is gone with it: the result is its number. */
  left(hold: Hold): number {
    const holds = this.#readHolds
    const index = holds?.findIndex((each) => each.hold === hold) ?? -1
    // not entered: the newest in Redis, if it is there at all
    if (holds === undefined || index === -1) return this.holds + 1
    const newest = holds.pop()!
    if (index < holds.length) holds[index] = newest
    this.deadline = Math.max(...holds.map(({ deadline }) => deadline))
    return index + 1
  }
}
