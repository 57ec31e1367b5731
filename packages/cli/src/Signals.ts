/**
 * The signals that redis-lock survives.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

/** Signals that end a foreground job, from a terminal, a supervisor or `kill`. */
const ending: ReadonlyArray<NodeJS.Signals> = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]

/** Ctrl-Z would stop the renewal of the lock but not the command, which has a process group of its own. */
const ignored: NodeJS.Signals = "SIGTSTP"

/**
 * Puts signals that would end this process into a queue instead, from now until the scope closes.
 */
export const listen: Effect.Effect<Queue.Dequeue<NodeJS.Signals>, never, Scope.Scope> = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<NodeJS.Signals>()
  const offer = (signal: NodeJS.Signals) => {
    Queue.offerUnsafe(queue, signal)
  }
  const ignore = () => {}
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      for (const signal of ending) process.on(signal, offer)
      process.on(ignored, ignore)
    }),
    () =>
      Effect.sync(() => {
        for (const signal of ending) process.off(signal, offer)
        process.off(ignored, ignore)
      })
  )
  return queue
})
