/**
 * The signals that redis-lock survives.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { ExitWith } from "../exit.ts"
import { codeOf } from "./CommandGroup.ts"

/**
 * Signals that end a process unless it listens to them. A platform that lacks one of them never sends it.
 *
 * Not among them, though they end a process as well:
 * - SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS: they report a crash, after which nothing can be relied on;
 * - SIGPROF: Node.js gets hundreds of them per second while it is profiled, and they would kill the command;
 * - real-time signals: Node.js cannot listen to them.
 */
const ending: ReadonlyArray<NodeJS.Signals> = [
  "SIGINT",
  "SIGTERM",
  "SIGHUP",
  "SIGQUIT",
  // a listener also keeps Node.js from opening its debugger
  "SIGUSR1",
  "SIGUSR2",
  "SIGALRM",
  "SIGVTALRM",
  "SIGXCPU",
  "SIGPWR",
  // SIGIO by another name; where only SIGIO exists, it is ignored by default
  "SIGPOLL",
  "SIGSTKFLT"
]

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

/** Waits for a signal, and ends redis-lock as the signal would. */
export const exitOn = (signals: Queue.Dequeue<NodeJS.Signals>): Effect.Effect<never, ExitWith> =>
  Effect.flatMap(Queue.take(signals), (signal) => new ExitWith({ code: codeOf(signal), message: "" }))
