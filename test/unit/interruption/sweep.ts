import type { Fiber } from "effect"
import { Context, Effect, Exit, Scheduler } from "effect"

/** Whether sweeps wait for something: in memory for nothing but the processor, so there one after the other each has its own time. */
export const isWaiting = (store: string): boolean => store !== "memory"

/**
 * Interrupts a program at its n-th operation, counted over all its fibers: either right there, or as soon as what runs has
 * come to wait for something (a reply of Redis, a message, another fiber).
 */
class InterruptingScheduler extends Scheduler.MixedScheduler {
  operations = 0
  readonly #at: number
  readonly #when: "there" | "waiting"
  readonly #main: () => Fiber.Fiber<unknown, unknown> | undefined

  constructor(at: number, when: "there" | "waiting", main: () => Fiber.Fiber<unknown, unknown> | undefined) {
    super()
    this.#at = at
    this.#when = when
    this.#main = main
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (++this.operations === this.#at) {
      const interrupt = () => (this.#main() ?? fiber).interruptUnsafe()
      if (this.#when === "there") interrupt()
      else queueMicrotask(interrupt)
    }
    return super.shouldYield(fiber)
  }
}

const ways = [
  { when: "there", maxOpsBeforeYield: 2048 },
  { when: "waiting", maxOpsBeforeYield: 2048 },
  // every fiber gives way to the others all the time; below 3 Effect itself gets nowhere, as yielding takes operations too
  { when: "there", maxOpsBeforeYield: 4 }
] as const

/**
 * Runs a program again and again, interrupted one operation later each time, in each of the three ways until it gets through
 * untouched. `check` runs after each. The result is the number of interruptions.
 */
export const sweep = Effect.fnUntraced(function* <A, E, R, E2, R2>(options: {
  readonly program: Effect.Effect<A, E, R>
  readonly check: (index: number, exit: Exit.Exit<A, E>) => Effect.Effect<void, E2, R2>
}) {
  const context = yield* Effect.context<R>()
  let interruptions = 0
  const left = new Set(ways)
  for (let index = 1; left.size > 0; index++) {
    for (const way of left) {
      const { maxOpsBeforeYield, when } = way
      let main: Fiber.Fiber<A, E> | undefined
      const scheduler = new InterruptingScheduler(index, when, () => main)
      const exit = yield* Effect.callback<Exit.Exit<A, E>>((resume) => {
        main = Effect.runForkWith(
          context.pipe(
            Context.add(Scheduler.Scheduler, scheduler),
            Context.add(Scheduler.MaxOpsBeforeYield, maxOpsBeforeYield)
          )
        )(options.program)
        main.addObserver((exit) => resume(Effect.succeed(exit)))
      })
      yield* options.check(index, exit)
      if (scheduler.operations < index) left.delete(way)
      else interruptions++
    }
  }
  return interruptions
})
