import type * as Fiber from "effect/Fiber"
import type { Scheduler } from "effect/Scheduler"

/** What tells whether a section may go on. */
interface Held {
  /** Whether its lease is over or lost. A loss that only the clock can tell is declared by that. */
  readonly isOver: () => boolean
}

/**
 * Runs the fibers of a section by the scheduler around it. None of them goes on after the lease is over: a fiber that resumes then yields,
 * until the loss has interrupted the section, or a reply that had arrived has extended the lease.
 */
export class SectionScheduler implements Scheduler {
  readonly executionMode: Scheduler["executionMode"]
  readonly #around: Scheduler
  #held: Held | undefined

  constructor(held: Held, around: Scheduler) {
    this.executionMode = around.executionMode
    this.#around = around
    this.#held = held
  }

  shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    // the first operation after it has resumed
    if (fiber.currentOpCount === 1 && this.#held !== undefined && this.#held.isOver()) return true
    return this.#around.shouldYield(fiber)
  }

  makeDispatcher(): ReturnType<Scheduler["makeDispatcher"]> {
    return this.#around.makeDispatcher()
  }

  /** The section has been interrupted or has ended: what still runs is its cleanup, or outlives it. */
  letGo(): void {
    this.#held = undefined
  }
}
