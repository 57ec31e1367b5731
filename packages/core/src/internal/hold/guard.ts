import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Scheduler } from "effect/Scheduler"
import { type LockLost, LockStoreError } from "../../LockError.ts"
import { afterWork, matchOutcome } from "../store/failures.ts"
import type { InternalHolding } from "./Hold.ts"
import { releaseMillis } from "./release.ts"

/** Gives a part of an uninterruptible region the interruptibility of its caller. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Runs the fibers of a section by the scheduler around it. None of them goes on after the lease is over: a fiber that resumes then yields,
 * until the loss has interrupted the section, or a reply that had arrived has extended the lease.
 */
export class SectionScheduler implements Scheduler {
  readonly executionMode: Scheduler["executionMode"]
  readonly #around: Scheduler
  #held: InternalHolding | undefined

  constructor(held: InternalHolding, around: Scheduler) {
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

/**
 * Whether the only problem is that the client was closed and has given everything back: the end of a scope does not report that.
 */
export const isClosed = (problems: Cause.Cause<LockLost | LockStoreError>): boolean =>
  problems.reasons.every(
    (reason) => reason._tag === "Fail" && reason.error._tag === "LockLost" && reason.error.reason === "ClientClosed"
  )

/**
 * Releases where the outcome changes nothing: after a section that has failed, or at the end of a scope. Such releases follow one
 * another when a program ends. If the store is away, they share one release timeout: after one that has given up, the next waits
 * no longer than has passed since, and continues in the background.
 */
export const releaseSoon = (hold: InternalHolding): Effect.Effect<void, LockLost | LockStoreError> => {
  for (const { lease } of hold.holds) {
    const { client } = lease
    const left = releaseMillis(client)
    if (left === client.options.releaseTimeoutMillis) continue
    // detached: it may release at other clients as well, after this one has closed
    return Effect.flatMap(Effect.forkDetach(hold.releaseNow(), { startImmediately: true }), (release) =>
      Effect.timeoutOrElse(Effect.interruptible(Fiber.join(release)), {
        duration: left,
        orElse: () => {
          client.gaveUp.at = client.now()
          const operation = "release (it continues in the background)"
          const cause = new Error("the store did not answer the release before this one in time either")
          return Effect.fail(new LockStoreError({ operation, lock: hold.name, reason: "TimedOut", cause }))
        }
      })
    )
  }
  return hold.releaseNow()
}

/**
 * Runs a body under a hold and releases it. The body runs in a fiber of its own, by the given scheduler; a loss interrupts it. The outcome:
 *
 * - the lock was lost before the body could begin: `LockLost`, and the body is not run
 * - the body failed by itself: its failure, regardless of the lock
 * - the lock was lost, or the release finds it not ours: `LockLost`, even if the body succeeded
 * - otherwise the outcome of the body
 *
 * Call it when the result is run, uninterruptibly; `restore` gives the body the interruptibility of the caller.
 */
export const guard = <A, E, R>(
  hold: InternalHolding,
  scheduler: SectionScheduler,
  body: Effect.Effect<A, E, R>,
  restore: Restore
): Effect.Effect<A, E | LockLost | LockStoreError, R> => {
  // the time since the grant may have been longer than the lease
  const lost = hold.checkLost()
  if (lost !== undefined) return Effect.andThen(Effect.ignore(hold.releaseNow()), Effect.fail(lost))
  return Effect.flatMap(Effect.forkChild(restore(body), { startImmediately: true, uninterruptible: true }), (child) => {
    const exit = child.pollUnsafe()
    return exit === undefined
      ? Effect.flatMap(outcome(hold, scheduler, child, restore), (exit) => end(hold, scheduler, exit))
      : end(hold, scheduler, exit)
  })
}

const end = <A, E>(
  hold: InternalHolding,
  scheduler: SectionScheduler,
  exit: Exit.Exit<A, E>
): Effect.Effect<A, E | LockLost | LockStoreError> => {
  scheduler.letGo()
  return matchOutcome(
    // a section that a loss has interrupted fails with that loss
    Exit.isSuccess(exit) || hold.checkLost() !== undefined ? hold.releaseNow() : releaseSoon(hold),
    () => exit,
    (problems) => settle(hold, exit, problems)
  )
}

/** Waits for the body; a loss interrupts it, and so does an interruption of the caller. */
const outcome = <A, E>(
  hold: InternalHolding,
  scheduler: SectionScheduler,
  child: Fiber.Fiber<A, E>,
  restore: Restore
): Effect.Effect<Exit.Exit<A, E>> => {
  const forget = hold.onLost(() => {
    scheduler.letGo()
    child.interruptUnsafe()
  })
  return Effect.matchCauseEffect(restore(Fiber.await(child)), {
    onSuccess: (exit) => {
      forget()
      return Effect.succeed(exit)
    },
    onFailure: (interruption) =>
      Effect.map(Effect.andThen(Fiber.interrupt(child), Fiber.await(child)), (exit) => {
        forget()
        return Exit.isFailure(exit) ? exit : Exit.failCause(interruption)
      })
  })
}

const settle = <A, E>(
  hold: InternalHolding,
  exit: Exit.Exit<A, E>,
  problems: Cause.Cause<LockLost | LockStoreError>
): Effect.Effect<A, E | LockLost | LockStoreError> => {
  if (Exit.isSuccess(exit)) return Effect.failCause(Cause.map(problems, afterWork))
  const losses = problems.reasons.filter(isLoss)
  // An interruption is the body's own outcome only where no loss has caused it. Another release that is not confirmed goes on by itself.
  if (Cause.hasInterruptsOnly(exit.cause) && losses.length > 0) return Effect.failCause(Cause.fromReasons(losses))
  return Effect.andThen(
    Effect.annotateLogs(Effect.logWarning("The lock's release went wrong after its section had failed.", problems), {
      lock: hold.name
    }),
    exit
  )
}

const isLoss = (reason: Cause.Reason<LockLost | LockStoreError>): boolean =>
  reason._tag === "Fail" && reason.error._tag === "LockLost"
