/**
 * Virtual time: a clock and a scheduler on which a program runs without ever waiting. All fibers run until they are blocked, then
 * the clock jumps to the next timer. Nothing depends on the machine, so a run can be repeated.
 */
import { clockOf } from "@effect-redis-lock/playground/VirtualTime"
import { Clock, Effect, type Exit, type Fiber, Scheduler } from "effect"

interface Due {
  readonly at: number
  readonly order: number
  run: (() => void) | undefined
}

const isBefore = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

export class VirtualTime {
  /** Milliseconds since the epoch. */
  now: number
  readonly start: number
  /** A heap: what is due first is at the top. */
  readonly #due: Array<Due> = []
  #order = 0
  #error: Error | undefined = undefined
  #tasks: Array<(() => void) | undefined> = []
  /** What is to run as soon as the code that runs now has ended. */
  #soon: Array<() => void> = []

  constructor(start: number) {
    this.start = start
    this.now = start
  }

  /** Calls back after the given milliseconds; the result cancels it. */
  after(millis: number, run: () => void): () => void {
    const due: Due = { at: this.now + Math.max(0, millis), order: this.#order++, run }
    this.#push(due)
    return () => {
      due.run = undefined
    }
  }

  readonly scheduler: Scheduler.Scheduler = new Scheduler.MixedScheduler("async", (task) => {
    const place = this.#tasks.push(task) - 1
    const tasks = this.#tasks
    return () => {
      tasks[place] = undefined
    }
  })

  readonly clock: Clock.Clock = this.clockAt(1)

  /** A clock that runs at a rate of its own; `after` calls back by it. */
  clockAt(rate: number, after = this.after.bind(this)): Clock.Clock {
    return clockOf({
      wallMillis: () => this.now,
      monotonicMillis: () => (this.now - this.start) * rate,
      after: (millis, run) => after(millis / rate, run)
    })
  }

  /** Ends the run: it throws that. */
  abort(error: Error): void {
    this.#error ??= error
  }

  /** Runs a program to its end. Microtasks and the platform's own timers, which a closing client goes by, are part of it meanwhile. */
  run<A, E>(program: Effect.Effect<A, E>): Exit.Exit<A, E> {
    const { queueMicrotask, setTimeout } = globalThis
    const { now } = performance
    performance.now = () => this.now - this.start
    globalThis.queueMicrotask = (task) => void this.#soon.push(task)
    globalThis.setTimeout = ((task: () => void, millis = 0) => this.after(millis, task)) as unknown as typeof setTimeout
    try {
      return this.#run(program)
    } finally {
      performance.now = now
      globalThis.queueMicrotask = queueMicrotask
      globalThis.setTimeout = setTimeout
    }
  }

  #run<A, E>(program: Effect.Effect<A, E>): Exit.Exit<A, E> {
    const fiber: Fiber.Fiber<A, E> = Effect.runFork(Effect.provideService(program, Clock.Clock, this.clock), {
      scheduler: this.scheduler
    })
    while (true) {
      this.#settle()
      if (this.#error !== undefined) throw this.#error
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return exit
      const next = this.#pop()
      if (next === undefined) throw new Error("the program waits for what will never happen")
      this.now = next.at
      next.run?.()
    }
  }

  /** Runs all fibers until they are blocked. */
  #settle(): void {
    this.#runSoon()
    while (this.#tasks.length > 0) {
      const tasks = this.#tasks
      this.#tasks = []
      for (const task of tasks) {
        task?.()
        this.#runSoon()
      }
    }
  }

  #runSoon(): void {
    while (this.#soon.length > 0) {
      const soon = this.#soon
      this.#soon = []
      for (const task of soon) task()
    }
  }

  #push(due: Due): void {
    const heap = this.#due
    let place = heap.length
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!isBefore(due, heap[above]!)) break
      heap[place] = heap[above]!
      place = above
    }
    heap[place] = due
  }

  #pop(): Due | undefined {
    const heap = this.#due
    while (heap.length > 0) {
      const top = heap[0]!
      const last = heap.pop()!
      if (heap.length > 0) this.#sink(last)
      if (top.run !== undefined) return top
    }
    return undefined
  }

  #sink(due: Due): void {
    const heap = this.#due
    let place = 0
    while (true) {
      let below = 2 * place + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++
      if (!isBefore(heap[below]!, due)) break
      heap[place] = heap[below]!
      place = below
    }
    heap[place] = due
  }
}
