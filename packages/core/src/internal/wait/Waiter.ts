/**
 * One fiber that waits in a queue of this process, asleep until it has the turn.
 */
import * as Effect from "effect/Effect"
import type { OwnTurn } from "../hold/Dependents.ts"
import type { Identity } from "../hold/owner.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import type { Linked } from "./LinkedList.ts"

/** What wakes the waiter that has the turn: a message or a release, or the end of its pause. */
export type Wake = "signal" | "tick"

/** How a fiber joins a queue. */
export interface Wanted {
  /** The identity that may re-enter a lock that is acquired meanwhile. */
  readonly identity?: Identity | undefined
  /** How many permits it wants. Default: 1. */
  readonly permits?: number | undefined
  /** When its wait time ends, on the monotonic clock. */
  readonly waitsUntil: number
  /** Whether it joins at the head, which was reserved for it. */
  readonly atHead?: boolean | undefined
}

/** What a waiter needs of its queue. */
interface TurnOf {
  readonly client: OwnTurn
  readonly turn: Waiter | undefined
  readonly wake: (wake: Wake) => void
}

export class Waiter implements Alarm, Linked<Waiter> {
  readonly identity: Identity | undefined
  readonly permits: number
  readonly waitsUntil: number
  /** Its place in the order of arrival. */
  readonly number: number
  isQueued = true
  /** The count of its latch as last read since it joined, by any waiter. */
  count: number | undefined = undefined
  due = 0
  heapIndex = -1
  before: Waiter | undefined = undefined
  behind: Waiter | undefined = undefined
  readonly #queue: TurnOf
  #resume: ((result: Effect.Effect<void>) => void) | undefined = undefined
  #isLate = false

  constructor(queue: TurnOf, { identity, permits = 1, waitsUntil }: Wanted, number: number) {
    this.#queue = queue
    this.identity = identity
    this.permits = permits
    this.waitsUntil = waitsUntil
    this.number = number
  }

  get hasTurn(): boolean {
    return this.#queue.turn === this
  }

  /** Whether its latch was found open, by any waiter. */
  get isServed(): boolean {
    return this.count === 0
  }

  /** Its pause is over; without the turn, its wait time. */
  ring(): void {
    if (this.hasTurn) {
      this.#queue.wake("tick")
    } else {
      this.#isLate = true
      this.wake()
    }
  }

  /** Resumes its fiber. */
  wake(): void {
    const resume = this.#resume
    if (resume === undefined) return
    // once, however often it is woken before it runs
    this.#resume = undefined
    this.#queue.client.inOwnTurn(() => resume(Effect.void))
  }

  /** Its latch has this count: if the latch is open, the waiter goes on without a request of its own. */
  tell(count: number): void {
    this.count = count
    if (this.isServed) this.wake()
  }

  /**
   * Sleeps until it has the turn, is served, its wait time is over, or it is woken for another reason. An interruption leaves nothing to
   * undo: who is woken then is gone.
   */
  get awaitTurn(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.hasTurn || this.isServed || this.#isLate) resume(Effect.void)
      else this.#resume = resume
    })
  }
}
