/**
 * A scheduler whose fiber gives way at one of its operations, for as long as a test likes.
 */
import { Effect, Scheduler } from "effect"

export interface Parking {
  readonly scheduler: Scheduler.Scheduler
  /** Whether the fiber has given way. */
  readonly isParked: boolean
  /** The fiber goes on, or does not give way at all. */
  readonly goOn: () => void
}

/** Its fiber, and those that it forks, give way at the `operation`-th operation. */
export const parkingAt = (operation: number): Effect.Effect<Parking> =>
  Effect.withFiber(({ cache: { scheduler: base } }) => {
    let operations = 0
    let isParked = false
    let goesOn = false
    const held: Array<() => void> = []
    const scheduler: Scheduler.Scheduler = {
      executionMode: base.executionMode,
      makeDispatcher: () => {
        const dispatcher = base.makeDispatcher()
        return {
          scheduleTask: (task, priority) => {
            const schedule = () => dispatcher.scheduleTask(task, priority)
            if (isParked && !goesOn) held.push(schedule)
            else schedule()
          },
          flush: () => dispatcher.flush()
        }
      },
      shouldYield: () => {
        if (++operations !== operation || goesOn) return false
        isParked = true
        return true
      }
    }
    return Effect.succeed({
      scheduler,
      get isParked() {
        return isParked
      },
      goOn: () => {
        goesOn = true
        for (const schedule of held.splice(0)) schedule()
      }
    })
  })
