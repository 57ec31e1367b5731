/**
 * A scheduler whose fiber gives way at one of its operations, for as long as a test likes.
 */
import { type Fiber, Scheduler } from "effect"

export class Parking extends Scheduler.MixedScheduler {
  /** Whether the fiber has given way. */
  isParked = false
  readonly #operation: number
  #operations = 0
  #goesOn = false
  /** What is to run once it goes on. */
  readonly #held: Array<() => void> = []

  /** The fiber, with those that it forks, gives way at this one of their operations. */
  constructor(operation: number) {
    super()
    this.#operation = operation
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (++this.#operations !== this.#operation || this.#goesOn) return super.shouldYield(fiber)
    this.isParked = true
    return true
  }

  override makeDispatcher(): ReturnType<Scheduler.MixedScheduler["makeDispatcher"]> {
    const dispatcher = super.makeDispatcher()
    const schedule = dispatcher.scheduleTask.bind(dispatcher)
    dispatcher.scheduleTask = (task, priority) => {
      if (this.isParked && !this.#goesOn) this.#held.push(() => schedule(task, priority))
      else schedule(task, priority)
    }
    return dispatcher
  }

  /** The fiber goes on, or does not give way at all. */
  goOn(): void {
    this.#goesOn = true
    for (const schedule of this.#held.splice(0)) schedule()
  }
}
