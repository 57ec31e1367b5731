/**
 * The monotonic clock, the pauses between attempts, and the alarms of a client.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import type { Report } from "../report/defects.ts"

/** The monotonic time of a clock in milliseconds; for the default clock without its detour through big integers. */
export const monotonicMillis = (clock: Clock.Clock): (() => number) =>
  clock === Context.get(Context.empty(), Clock.Clock)
    ? performance.now.bind(performance)
    : () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Pauses that double, up to the longest. */
export const growing = (first: Duration.Input, longest: Duration.Input): Schedule.Schedule<unknown> =>
  Schedule.min([Schedule.exponential(first), Schedule.spaced(longest)])

/** Retries after a transient failure. Not jittered: processes do not notice a failure at the same moment. */
export const reconnecting = growing("100 millis", "5 seconds")

/**
 * Jitters an interval, so that processes do not send requests in step. A fifth is the most by which it may grow: see `LongestIntervals`,
 * after which a writer no longer counts as waiting, and a place is lost.
 */
export const jittered = (intervalMillis: number): number => intervalMillis * (0.8 + 0.4 * Math.random())

export interface Alarm extends Due {
  /** Called once, when the alarm is due and no longer set. */
  ring(now: number): void
}

/**
 * Rings due alarms, with one fiber for a whole client: renewals, deadlines, fallback intervals and wait times are set and
 * cancelled far more often than they fall due, and a fiber or a timer for each would cost more than everything else.
 */
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

/**
 * A priority queue by due time: a binary heap whose items know their index, so that any of them can be removed or moved in
 * logarithmic time. Holdings come and go far more often than they fall due, hence no lazy deletion.
 */
export interface Due {
  /** The due time on the monotonic clock, in milliseconds. */
  due: number
  /** Index in the heap, maintained by the queue; -1 when not queued. */
  heapIndex: number
}

export class DueQueue<A extends Due> {
  readonly #heap: Array<A> = []

  get first(): A | undefined {
    return this.#heap[0]
  }

  /** All items, in no order. */
  get items(): ReadonlyArray<A> {
    return this.#heap
  }

  /** Adds an item, or moves it after its `due` has changed. */
  put(item: A): void {
    const heap = this.#heap
    if (item.heapIndex === -1) item.heapIndex = heap.push(item) - 1
    let place = item.heapIndex
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (heap[parent]!.due <= item.due) break
      this.#move(heap[parent]!, place)
      place = parent
    }
    while (true) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.due < heap[child]!.due) child++
      if (heap[child]!.due >= item.due) break
      this.#move(heap[child]!, place)
      place = child
    }
    this.#move(item, place)
  }

  remove(item: A): void {
    const place = item.heapIndex
    if (place === -1) return
    item.heapIndex = -1
    const last = this.#heap.pop()!
    if (last === item) return
    this.#move(last, place)
    this.put(last)
  }

  #move(item: A, place: number): void {
    this.#heap[place] = item
    item.heapIndex = place
  }
}
