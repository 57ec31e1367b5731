/**
 * What the application's code throws: resuming or interrupting one of its fibers runs that fiber, its finalizers and its observers at once,
 * within the caller. An exception there must not end a loop over other locks.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Logs an exception of the application the way Effect logs unhandled ones: at `References.UnhandledLogLevel`. */
export const report = (context: Context.Context<never>, defect: unknown): void =>
  void Effect.runForkWith(context)(
    Effect.ignoreCause(Effect.die(defect), {
      log: "Unhandled",
      message: "An exception was thrown while a fiber was resumed or interrupted; the lock client continues."
    })
  )

export type Report = (defect: unknown) => void
