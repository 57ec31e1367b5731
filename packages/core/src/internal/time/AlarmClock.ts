/**
 * Rings due alarms, with one fiber for a whole client: renewals, deadlines, fallback intervals and wait times are set and
 * cancelled far more often than they fall due, and a fiber or a timer for each would cost more than everything else.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { type Due, DueQueue } from "./DueQueue.ts"
import type { Report } from "../report/ownTurn.ts"

export interface Alarm extends Due {
  /** Called once, when the alarm is due and no longer set. */
  ring(now: number): void
}

export class AlarmClock {
  readonly #now: () => number
  readonly #report: Report
  readonly #queue = new DueQueue<Alarm>()
  readonly #earlier = Latch.makeUnsafe(false)
  #wakesAt = Number.POSITIVE_INFINITY

  constructor(now: () => number, report: Report) {
    this.#now = now
    this.#report = report
  }

  /** Sets an alarm for a time on the monotonic clock, or moves it. */
  set(alarm: Alarm, due: number): void {
    alarm.due = due
    this.#queue.put(alarm)
    if (due < this.#wakesAt) this.#earlier.openUnsafe()
  }

  cancel(alarm: Alarm): void {
    this.#queue.remove(alarm)
  }

  /** The fiber: sleeps until the first alarm is due, or until an earlier one is set. Only an interruption ends it. */
  get run(): Effect.Effect<never> {
    return Effect.forever(
      Effect.catchCause(this.#round, (cause) => {
        if (!Cause.hasInterruptsOnly(cause)) this.#report(Cause.squash(cause))
        return Effect.yieldNow
      })
    )
  }

  get #round(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const now = this.#now()
      for (let first = this.#queue.first; first !== undefined && first.due <= now; first = this.#queue.first) {
        this.#queue.remove(first)
        try {
          first.ring(now)
        } catch (defect) {
          this.#report(defect)
        }
      }
      this.#earlier.closeUnsafe()
      const first = this.#queue.first
      this.#wakesAt = first?.due ?? Number.POSITIVE_INFINITY
      return first === undefined
        ? this.#earlier.await
        : Effect.raceFirst(Effect.sleep(Math.ceil(Math.max(0, first.due - this.#now()))), this.#earlier.await)
    })
  }
}
