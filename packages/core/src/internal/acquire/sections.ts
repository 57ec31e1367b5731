/**
 * Holds locks and permits for as long as a scope is open, or around an effect, which a loss interrupts.
 *
 * Requests run uninterruptibly except what is wrapped in `restore`.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Option from "effect/Option"
import { PreventSchedulerYield, Scheduler } from "effect/Scheduler"
import * as Scope from "effect/Scope"
import { type AcquireError, type LockLost, LockStoreError } from "../../LockError.ts"
import { InternalHolding } from "../hold/Hold.ts"
import { type Invalid, isInvalid } from "../options/acquireOptions.ts"
import { ownerText } from "../report/shown.ts"
import { type SpanAttributes, traceAcquire, traceHold, traceHoldUntilClosed } from "../report/spans.ts"
import { matchOutcome } from "../store/commands.ts"
import { afterWork } from "../store/failures.ts"
import type { Restore } from "./ask.ts"

/** A validated request. */
export interface Prepared<out H extends InternalHolding, out E = never> {
  /** The name of the lock or semaphore. */
  readonly name: string
  /** The name of its kind in spans. */
  readonly label: string
  /** Waits as long as allowed. Must run uninterruptibly, and at once. */
  readonly acquire: (restore: Restore) => Effect.Effect<H, AcquireError | E>
  /** Tries once; undefined if it was not free. Must run uninterruptibly, and at once. */
  readonly tryAcquire: (restore: Restore) => Effect.Effect<H | undefined, LockStoreError | E>
}

type Running = Fiber.Fiber<unknown, unknown>

/** Prepares the request of a fiber, for a scope if there is one; or returns the problem with it. */
export type Prepare<H extends InternalHolding, E = never> = (
  fiber: Running,
  scope: Scope.Scope | undefined
) => Prepared<H, E> | Invalid

/** What differs between locks and the kinds of semaphore. */
export interface Family<in H> {
  readonly acquireSpan: string
  readonly holdSpan: string
  /** The span attributes of a holding. */
  readonly spanAttributes: (held: H) => SpanAttributes
  /** Reports that a closing scope could not release what it held. */
  readonly warn: (held: H, problems: Cause.Cause<LockLost | LockStoreError>) => Effect.Effect<void>
  /** What the body of a section inherits from the section. */
  readonly inside?: <R>(context: Context.Context<R>, held: H, fiber: Running) => Context.Context<R>
}

/** Acquires for as long as the scope is open. */
export const scoped = <H extends InternalHolding, E>(
  family: Family<H>,
  prepare: Prepare<H, E>
): Effect.Effect<H, AcquireError | E, Scope.Scope> => asking(family, prepare, true, waiting<H, E>, keeping(family))

/** {@link scoped}, trying once. */
export const tryScoped = <H extends InternalHolding, E>(
  family: Family<H>,
  prepare: Prepare<H, E>
): Effect.Effect<Option.Option<H>, LockStoreError | Invalid | E, Scope.Scope> =>
  asking(family, prepare, true, once<H, E>, ifAcquired(keeping(family)))

/** Runs an effect while holding what the request acquires. */
export const section = <H extends InternalHolding, E, A, E2, R>(
  family: Family<H>,
  prepare: Prepare<H, E>,
  body: Effect.Effect<A, E2, R>
): Effect.Effect<A, AcquireError | LockLost | E | E2, R> =>
  asking(family, prepare, false, waiting<H, E>, guarding(family, body))

/** {@link section}, trying once. */
export const trySection = <H extends InternalHolding, E, A, E2, R>(
  family: Family<H>,
  prepare: Prepare<H, E>,
  body: Effect.Effect<A, E2, R>
): Effect.Effect<Option.Option<A>, LockStoreError | LockLost | Invalid | E | E2, R> =>
  asking(family, prepare, false, once<H, E>, ifAcquired(guarding(family, body)))

/** Acquires without releasing: other code releases it later. */
export const acquired = <H extends InternalHolding, E>(
  family: Family<H>,
  prepare: Prepare<H, E>
): Effect.Effect<void, AcquireError | E> => asking(family, prepare, false, waiting<H, E>, () => Effect.void)

/** {@link acquired}, trying once: whether it was acquired. */
export const tryAcquired = <H extends InternalHolding, E>(
  family: Family<H>,
  prepare: Prepare<H, E>
): Effect.Effect<boolean, LockStoreError | Invalid | E> =>
  asking(family, prepare, false, once<H, E>, (held) => Effect.succeed(held !== undefined))

const waiting = <H extends InternalHolding, E>(prepared: Prepared<H, E>, restore: Restore) => prepared.acquire(restore)

const once = <H extends InternalHolding, E>(prepared: Prepared<H, E>, restore: Restore) => prepared.tryAcquire(restore)

/** Whether the caller traces: else a span would cost more than the lock. */
const isTracing = (fiber: Running): boolean => fiber.cache.span !== undefined

const scopeOf = (fiber: Running): Scope.Scope =>
  Context.getUnsafe(fiber.context as Context.Context<Scope.Scope>, Scope.Scope)

/** What to do with the answer to a request of a fiber. */
type Use<Answer, H extends InternalHolding, A, E, R> = (
  answer: Answer,
  prepared: Prepared<H, unknown>,
  fiber: Running,
  restore: Restore
) => Effect.Effect<A, E, R>

/** Does something with what was acquired, if it was. */
const ifAcquired =
  <H extends InternalHolding, A, E, R>(use: Use<H, H, A, E, R>): Use<H | undefined, H, Option.Option<A>, E, R> =>
  (held, prepared, fiber, restore) =>
    held === undefined ? Effect.succeedNone : Effect.asSome(use(held, prepared, fiber, restore))

/** Prepares a request, for the scope of its fiber or for no scope, sends it, and continues with `f`. */
const asking = <H extends InternalHolding, E, Answer, E2, A, E3, R>(
  { acquireSpan }: Family<H>,
  prepare: Prepare<H, E>,
  isScoped: boolean,
  ask: (prepared: Prepared<H, E>, restore: Restore) => Effect.Effect<Answer, E2>,
  f: Use<Answer, H, A, E3, R>
): Effect.Effect<A, E2 | E3 | Invalid, R> =>
  Effect.withFiber<A, E2 | E3 | Invalid, R>((fiber) => {
    const prepared = prepare(fiber, isScoped ? scopeOf(fiber) : undefined)
    if (isInvalid(prepared)) return Effect.fail(prepared)
    return Effect.uninterruptibleMask((restore) => {
      // suspended: an interruption that has just come takes effect before the result of this function is run
      const asked = Effect.suspend(() => ask(prepared, restore))
      return Effect.flatMap(isTracing(fiber) ? tracing(acquireSpan, prepared, asked) : asked, (answer) =>
        f(answer, prepared, fiber, restore)
      )
    })
  })

/** Traces a request. What it has acquired is released if the tracer throws then: its caller never learns of it. */
const tracing = <Answer, E>(
  name: string,
  prepared: Prepared<InternalHolding, unknown>,
  asked: Effect.Effect<Answer, E>
): Effect.Effect<Answer, E> => {
  let held: Answer | undefined
  const noted = Effect.map(asked, (answer) => (held = answer))
  return Effect.onError(traceAcquire(name, prepared, noted), () =>
    held instanceof InternalHolding ? abandon(held) : Effect.void
  )
}

/** Releases what the exception of a tracer has kept from its holder, if that has not released it. */
const abandon = (held: InternalHolding): Effect.Effect<void> => Effect.ignore(releaseSoon(held))

/** Keeps what was acquired until the scope closes. */
const keeping =
  <H extends InternalHolding>(family: Family<H>): Use<H, H, H, never, never> =>
  (held, prepared, fiber) => {
    const scope = scopeOf(fiber)
    const kept = Effect.as(Scope.addFinalizerExit(scope, releaseOrWarn(family, held)), held)
    if (!isTracing(fiber)) return kept
    const traced = traceHoldUntilClosed(family.holdSpan, prepared, held, family.spanAttributes(held), scope)
    return Effect.andThen(
      Effect.onError(traced, () => abandon(held)),
      kept
    )
  }

/** A finalizer that refers to the holding alone, as many holdings may live for long. */
const releaseOrWarn =
  <H extends InternalHolding>({ warn }: Family<H>, held: H) =>
  (): Effect.Effect<void> =>
    Effect.catchCause(Effect.uninterruptible(releaseSoon(held)), (problems) =>
      isClosed(problems) ? Effect.void : warn(held, problems)
    )

/**
 * Whether the only problem is that the client was closed and has given everything back: the end of a scope does not report that.
 */
const isClosed = (problems: Cause.Cause<LockLost | LockStoreError>): boolean =>
  problems.reasons.every((reason) => isLoss(reason) && reason.error.reason === "ClientClosed")

/**
 * Releases where the outcome changes nothing: after a section that has failed, or at the end of a scope. Such releases follow one
 * another when a program ends. If the store is away, they share one release timeout (`ReleaseTime`), and continue in the
 * background.
 */
const releaseSoon = (hold: InternalHolding): Effect.Effect<void, LockLost | LockStoreError> => {
  for (const { lease } of hold.holds) {
    const { client } = lease
    const left = client.releaseTime.leftFor(lease)
    if (left === undefined) continue
    // detached: it may release at other clients as well, after this one has closed
    return Effect.flatMap(Effect.forkDetach(hold.releaseNow(), { startImmediately: true }), (release) =>
      Effect.timeoutOrElse(Effect.interruptible(Fiber.join(release)), {
        duration: left,
        orElse: () => {
          client.releaseTime.gaveUpEarly(lease)
          const continues = lease.kind.mode === "permit" ? "the permits are given back" : "it continues"
          const operation = `release (${continues} in the background)`
          const cause = new Error("the store did not answer the release before this one in time either")
          return Effect.fail(new LockStoreError({ operation, lock: hold.name, reason: "TimedOut", cause }))
        }
      })
    )
  }
  return hold.releaseNow()
}

/** Runs the body under what was acquired, and releases it. */
const guarding =
  <H extends InternalHolding, A, E, R>(
    { holdSpan, inside, spanAttributes }: Family<H>,
    body: Effect.Effect<A, E, R>
  ): Use<H, H, A, E | LockLost | LockStoreError, R> =>
  (held, prepared, fiber, restore) => {
    const { preventYield } = fiber.cache
    const scheduler = new SectionScheduler(held, fiber.cache.scheduler, preventYield)
    const inner = Effect.updateContext(body, (context: Context.Context<R>) => {
      const asked = preventYield ? Context.add(context, PreventSchedulerYield, false) : context
      const scheduled = Context.add(asked, Scheduler, scheduler)
      return inside === undefined ? scheduled : inside(scheduled, held, fiber)
    })
    if (!isTracing(fiber)) return guard(held, scheduler, inner, restore)
    const traced = Effect.suspend(() => guard(held, scheduler, inner, restore))
    return Effect.onError(traceHold(holdSpan, prepared, held, spanAttributes(held), traced), () => abandon(held))
  }

/**
 * Runs the fibers of a section by the scheduler around it. None of them goes on after the lease is over: a fiber that resumes then yields,
 * until the loss has interrupted the section, or a reply that had arrived has extended the lease.
 */
class SectionScheduler implements Scheduler {
  readonly executionMode: Scheduler["executionMode"]
  #around: Scheduler
  /** Whether that one is never asked. */
  #preventsYield: boolean
  #held: InternalHolding | undefined

  constructor(held: InternalHolding, around: Scheduler, preventsYield: boolean) {
    this.executionMode = around.executionMode
    this.#around = around
    this.#preventsYield = preventsYield
    this.#held = held
  }

  shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    // the first operation after it has resumed
    if (fiber.currentOpCount === 1 && this.#held !== undefined && this.#held.isOver()) return true
    return !this.#preventsYield && this.#around.shouldYield(fiber)
  }

  makeDispatcher(): ReturnType<Scheduler["makeDispatcher"]> {
    return this.#around.makeDispatcher()
  }

  /** The section has been interrupted or has ended: what still runs is its cleanup, or outlives it. */
  letGo(): void {
    this.#held = undefined
    // a fiber that outlives it may begin the next section, and so on without end: each forgets those that have ended before it
    while (this.#around instanceof SectionScheduler && this.#around.#held === undefined) {
      this.#preventsYield ||= this.#around.#preventsYield
      this.#around = this.#around.#around
    }
  }
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
const guard = <A, E, R>(
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
      lock: hold.name,
      owner: ownerText(hold.owner)
    }),
    exit
  )
}

const isLoss = (reason: Cause.Reason<LockLost | LockStoreError>): reason is Cause.Fail<LockLost> =>
  reason._tag === "Fail" && reason.error._tag === "LockLost"
