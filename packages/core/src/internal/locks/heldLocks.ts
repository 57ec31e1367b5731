/**
 * How the functions of `Lock` hold and use locks of any kind.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as References from "effect/References"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { InvalidLockName } from "../../LockError.ts"
import type { HoldingOf } from "../../Holding.ts"
import type { Family, Prepare, Prepared } from "../acquire/sections.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { type Invalid, isInvalid } from "../options/durations.ts"
import { CurrentOwner, Owner, Sections } from "../hold/owner.ts"
import { labelled, type SpanAttributes } from "../report/spans.ts"
import { reentrant } from "../kinds/kinds.ts"
import type { AnyLock, PublicLock } from "./AnyLock.ts"
import { LockImpl, lockOf } from "./LockImpl.ts"
import type { Resolved } from "./Synchronizer.ts"

/** The span attributes of a hold. A composed lock has a token for each member, and its span has none. */
export const spanAttributesOf = ({ holds: [first], owner, token }: InternalHolding): SpanAttributes => ({
  "lock.owner": owner,
  ...(typeof token === "bigint" ? { "lock.token": String(token) } : undefined),
  ...(first === undefined ? undefined : labelled(first.lease.client))
})

/** The body of a section inherits its holds, for re-entry, and has the lock's name on its log lines. */
export const locks: Family<InternalHolding> = {
  acquireSpan: "Lock.acquire",
  holdSpan: "Lock.hold",
  spanAttributes: spanAttributesOf,
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(Effect.logWarning("The lock's scope has closed, but its release went wrong.", problems), {
      lock: name,
      owner
    }),
  inside: (context, { holds, name }, fiber) => {
    const { explicit, sections } = fiber.getRef(CurrentOwner)
    let inner = sections
    for (const hold of holds) inner = new Sections(hold, inner)
    return Context.add(
      Context.add(context, CurrentOwner, new Owner(explicit, inner)),
      References.CurrentLogAnnotations,
      { ...fiber.getRef(References.CurrentLogAnnotations), lock: name }
    )
  }
}

/** The holding of a lock; the type of the lock says whether it has a token. */
type HeldLock<T> = InternalHolding<T> & HoldingOf<T>

/** A request for a lock, or for the lock of a name. */
export const prepareLock =
  <R, E, T>(lock: PublicLock<R, E, T> | string, options: AcquireOptions | undefined): Prepare<HeldLock<T>, E> =>
  (fiber, scope) =>
    lockOf(lock).prepare(fiber, scope, options) as Prepared<HeldLock<T>, E> | Invalid

/** Runs `f` with a lock, without acquiring it. */
export const using = <A, E>(
  lock: PublicLock<unknown, unknown, unknown> | string,
  f: (lock: AnyLock<unknown, unknown, unknown>, fiber: Fiber<unknown, unknown>) => Effect.Effect<A, E>
): Effect.Effect<A, E> => Effect.withFiber<A, E>((fiber) => f(lockOf(lock), fiber))

/** The client that serves a name, and its keys there. */
export const resolveName = (name: string): Effect.Effect<Resolved, InvalidLockName> =>
  Effect.withFiber((fiber) => {
    const at = new LockImpl(name, reentrant, undefined, undefined).resolve(fiber)
    // without options, only the name can be invalid
    return isInvalid(at) ? Effect.fail(at as InvalidLockName) : Effect.succeed(at)
  })
