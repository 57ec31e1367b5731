import * as Queue from "effect/Queue"
import type { Identity } from "../hold/owner.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import type { Linked } from "./LinkedList.ts"
import type { Wake } from "./Waiter.ts"

/** One waiter of this process in the queue of a fair lock, where it has a place and a channel of its own. */
export class FairWaiter implements Alarm, Linked<FairWaiter> {
  readonly owner: string
  readonly identity: Identity
  readonly signals: Queue.Queue<Wake>
  /** Whether a command is on its way that may end the wait: until then the place needs no refresh. */
  asking = true
  /** Until when a command of it may still take effect that has failed without its being known whether it ran, on the monotonic clock. */
  unsureUntil = Number.NEGATIVE_INFINITY
  /** When it last asked. */
  askedAt = Number.NEGATIVE_INFINITY
  /** Until when it is willing to wait. */
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

  /** Whether such a command has failed: it may hold the lock. */
  get isUnsure(): boolean {
    return this.unsureUntil > Number.NEGATIVE_INFINITY
  }

  /** The time it wanted to wait is over, or the holder's lease. */
  ring(): void {
    Queue.offerUnsafe(this.signals, "tick")
  }

  signal(): void {
    Queue.offerUnsafe(this.signals, "signal")
  }
}
