/**
 * How the functions of `Lock` hold a lock: for a scope, or around an effect.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type * as Option from "effect/Option"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type { Holding, HoldingOf } from "../../Holding.ts"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { Lock, Services } from "../../Lock.ts"
import type { AcquireError, LockLost, LockStoreError } from "../../LockError.ts"
import { guard, isClosed, type Restore } from "../hold/guard.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { CurrentOwner } from "../hold/owner.ts"
import { traced, tracedUntilClosed } from "../report/telemetry.ts"
import { type AnyLock, type Invalid, isInvalid, type PreparedAcquire } from "./AnyLock.ts"
import { lockOf } from "./LockImpl.ts"

type Ask<E, T, A, E2> = (asking: PreparedAcquire<E, T>, restore: Restore) => Effect.Effect<A, E2>

/** Waits for as long as allowed. */
export const acquire = <E, T>(
  asking: PreparedAcquire<E, T>,
  restore: Restore
): Effect.Effect<InternalHolding<T>, AcquireError | E> => asking.acquire(restore)

/** Asks once. */
export const tryAcquire = <E, T>(
  asking: PreparedAcquire<E, T>,
  restore: Restore
): Effect.Effect<Option.Option<InternalHolding<T>>, LockStoreError | E> => asking.tryAcquire(restore)

/** Acquires for as long as the scope is open. */
export const scopedWith = <R, E, T, Asked, A, E2>(
  lock: Lock<R, E, T> | string,
  options: AcquireOptions | undefined,
  ask: Ask<E, T, Asked, E2>,
  f: (asked: Asked, keep: (held: InternalHolding<T>) => Effect.Effect<HoldingOf<T>>) => Effect.Effect<A>
): Effect.Effect<A, E2 | Invalid, R | Scope.Scope> =>
  Effect.withFiber<A, E2 | Invalid>((fiber) => {
    const scope = Context.getUnsafe(fiber.context as Context.Context<Scope.Scope>, Scope.Scope)
    const asking = lockOf(lock).prepare(fiber, scope, options)
    if (isInvalid(asking)) return Effect.fail(asking)
    const keep = (held: InternalHolding<T>): Effect.Effect<HoldingOf<T>> =>
      Effect.as(
        Effect.andThen(
          tracedUntilClosed(fiber, "Lock.hold", asking, scope),
          Scope.addFinalizerExit(scope, releaseAndReport(held))
        ),
        held as Holding<T> as HoldingOf<T>
      )
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(traced(fiber, "Lock.acquire", asking, ask(asking, restore)), (asked) => f(asked, keep))
    )
  })

/** A finalizer that keeps nothing alive but the holding: many may be held for long. */
const releaseAndReport = (held: InternalHolding) => (): Effect.Effect<void> =>
  Effect.catchCause(held.release, (problems) =>
    isClosed(problems)
      ? Effect.void
      : Effect.annotateLogs(Effect.logWarning("The lock's scope has closed, but its release went wrong.", problems), {
          lock: held.name,
          owner: held.owner
        })
  )

type Run = <A, E, R>(
  held: InternalHolding,
  body: Effect.Effect<A, E, R>
) => Effect.Effect<A, E | LockLost | LockStoreError, R>

/** Runs an effect under a lock. */
export const section = <Asked, A, E, E2, E3, R, R2, T>(
  lock: Lock<R2, E2, T> | string,
  options: AcquireOptions | undefined,
  ask: Ask<E2, T, Asked, E3>,
  f: (asked: Asked, run: Run) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | E3 | Invalid, R | R2> =>
  Effect.withFiber<A, E | E3 | Invalid, R>((fiber) => {
    const asking = lockOf(lock).prepare(fiber, undefined, options)
    if (isInvalid(asking)) return Effect.fail(asking)
    return Effect.uninterruptibleMask((restore) => {
      const run: Run = (held, body) =>
        guard(held, traced(fiber, "Lock.hold", asking, Effect.updateContext(body, insideSection(fiber, held))), restore)
      return Effect.flatMap(traced(fiber, "Lock.acquire", asking, ask(asking, restore)), (asked) => f(asked, run))
    })
  }) as Effect.Effect<A, E | E3 | Invalid, R | R2>

/** What the body of a section inherits: its holds, for re-entry, and the lock's name on its log lines. */
const insideSection =
  (fiber: Fiber<unknown, unknown>, { holds, name }: InternalHolding) =>
  <R>(context: Context.Context<R>): Context.Context<R> => {
    const { explicit, sections } = fiber.getRef(CurrentOwner)
    let inner = sections
    for (const hold of holds) inner = { hold, outer: inner }
    return Context.add(
      Context.add(context, CurrentOwner, { explicit, sections: inner }),
      References.CurrentLogAnnotations,
      { ...fiber.getRef(References.CurrentLogAnnotations), lock: name }
    )
  }

/** Runs something with a lock, outside of any acquisition. */
export const using = <L extends Lock<unknown, unknown, unknown> | string, A, E>(
  lock: L,
  f: (lock: AnyLock<unknown, unknown, unknown>, fiber: Fiber<unknown, unknown>) => Effect.Effect<A, E>
): Effect.Effect<A, E, Services<L>> =>
  Effect.withFiber<A, E>((fiber) => f(lockOf(lock), fiber)) as Effect.Effect<A, E, Services<L>>
