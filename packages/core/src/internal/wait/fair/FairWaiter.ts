import * as Queue from "effect/Queue"
import type { Identity } from "../../hold/owner.ts"
import type { Alarm } from "../../time/AlarmClock.ts"
import type { Linked } from "../LinkedList.ts"
import type { Wake } from "../Waiter.ts"

/** One waiter of this process in the queue of a fair lock, where it has a place and a channel of its own. */
export class FairWaiter implements Alarm, Linked<FairWaiter> {
  readonly owner: string
  readonly identity: Identity
  readonly signals: Queue.Queue<Wake>
  /** Whether a request is in flight or was granted: the place then needs no refresh. */
  asking = true
  /** Until when a request that failed with unknown outcome may still take effect, on the monotonic clock. */
  unsureUntil = Number.NEGATIVE_INFINITY
  /** When its last request was sent, on the monotonic clock. */
  askedAt = Number.NEGATIVE_INFINITY
  /** When its wait time ends, on the monotonic clock. */
  readonly waitsUntil: number
  before: FairWaiter | undefined = undefined
  behind: FairWaiter | undefined = undefined
  due = 0
  heapIndex = -1

  constructor(owner: string, identity: Identity, signals: Queue.Queue<Wake>, waitsUntil: number) {
    this.owner = owner
    this.identity = identity
    this.signals = signals
    this.waitsUntil = waitsUntil
  }

  /** Whether a request has failed with unknown outcome, so that it may hold the lock. */
  get isUnsure(): boolean {
    return this.unsureUntil > Number.NEGATIVE_INFINITY
  }

  /** Its wait time is over, or the holder's lease has ended. */
  ring(): void {
    Queue.offerUnsafe(this.signals, "tick")
  }

  signal(): void {
    Queue.offerUnsafe(this.signals, "signal")
  }
}
