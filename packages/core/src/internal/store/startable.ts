/**
 * What can also be started by a caller that is not a fiber: a command, the `eval` of a driver, a subscription. A quorum asks five servers
 * at once, and a message goes to its waiters: without a fiber for each, a RedLock on three servers costs the client a fifth less, on
 * five a quarter.
 *
 * How to start it is a property of the Effect, function or Stream itself. A wrapper that maps or replaces it loses the property, or has that of
 * another function, and the result is run by a fiber: what a wrapper returns is always what runs.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { report } from "../report/defects.ts"

/** A started operation. */
export interface Cancellable {
  /** Abandons it: it does not call back, and if it was not sent yet, it never is. */
  cancel(): void
}

/** The property that starts it. */
export const StartKey = Symbol.for("effect-redis-lock/Start")

export type OnExit<A, E> = (exit: Exit.Exit<A, E>) => void

type StartEffect<A, E> = (onExit: OnExit<A, E>) => Cancellable

/**
 * An Effect that {@link start} starts without a fiber. What `begin` returns is its own cancellation, as an Effect, which an interruption
 * runs.
 */
export class Startable<A, E> extends Effectable.Class<A, E> {
  readonly [StartKey]: (onExit: OnExit<A, E>) => Cancellable & Effect.Effect<void>

  constructor(begin: (onExit: OnExit<A, E>) => Cancellable & Effect.Effect<void>) {
    super()
    this[StartKey] = begin
  }

  override asEffect(): Effect.Effect<A, E> {
    return Effect.callback(this[StartKey])
  }
}

/** Starts an Effect: by itself if it can be started, else on a fiber of its own. It calls back once, perhaps at once. */
export const start = <A, E>(effect: Effect.Effect<A, E>, onExit: OnExit<A, E>): Cancellable => {
  const own = effect as { readonly [StartKey]?: StartEffect<A, E> }
  if (own[StartKey] !== undefined) return own[StartKey](onExit)
  const fiber = Effect.runForkWith(Fiber.getCurrent()?.context ?? Context.empty())(effect)
  const forget = fiber.addObserver(onExit)
  return {
    cancel: () => {
      // an interrupted fiber may end at once
      forget()
      fiber.interruptUnsafe()
    }
  }
}

/** An Effect from a callback. Interruption cancels it; what the resumed fiber's observers throw stays out of the caller. */
export const fromCallback = <A, E>(
  begin: (resume: (effect: Effect.Effect<A, E>) => void) => Cancellable
): Effect.Effect<A, E> =>
  Effect.callback((resume) => {
    const fiber = Fiber.getCurrent()
    const started = begin((effect) => {
      try {
        resume(effect)
      } catch (defect) {
        report(fiber?.context ?? Context.empty(), defect)
      }
    })
    return Effect.sync(() => started.cancel())
  })

/** Starts a subscription; calls back with every element until it is cancelled or fails. */
type StartStream<A, E> = (onElement: (element: A) => void, onFailure: (error: E) => void) => Cancellable

/** A Stream that {@link runStream} runs without a queue of its own. */
export const startableStream = <A, E>(start: StartStream<A, E>): Stream.Stream<A, E> => {
  const stream = Stream.callback<A, E>((elements) =>
    Effect.acquireRelease(
      Effect.sync(() =>
        start(
          (element) => Queue.offerUnsafe(elements, element),
          (error) => Queue.failCauseUnsafe(elements, Cause.fail(error))
        )
      ),
      (started) => Effect.sync(() => started.cancel())
    )
  )
  return Object.assign(stream, { [StartKey]: start })
}

const startOf = <A, E>(stream: Stream.Stream<A, E>) => (stream as { readonly [StartKey]?: StartStream<A, E> })[StartKey]

/** `Stream.runForEach` with a plain function, which a {@link startableStream} calls at once. */
export const runStream = <A, E>(
  stream: Stream.Stream<A, E>,
  onElement: (element: A) => void
): Effect.Effect<void, E> => {
  const start = startOf(stream)
  return start === undefined
    ? Stream.runForEach(stream, (element) => Effect.sync(() => onElement(element)))
    : fromCallback((resume) => start(onElement, (error) => resume(Effect.fail(error))))
}

/** `Stream.mapError` whose result is startable where the stream is. */
export const mapStreamError = <A, E, E2>(stream: Stream.Stream<A, E>, f: (error: E) => E2): Stream.Stream<A, E2> => {
  const start = startOf(stream)
  return start === undefined
    ? Stream.mapError(stream, f)
    : startableStream((onElement, onFailure) => start(onElement, (error) => onFailure(f(error))))
}
