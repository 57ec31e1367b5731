/**
 * Spans, only for a caller that traces: without one a span would cost more than the lock.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import type * as Tracer from "effect/Tracer"
import type { LockLost } from "../../LockError.ts"
import { kindAttribute, lossAttribute } from "./telemetry.ts"

interface Traced {
  /** The lock's name. */
  readonly name: string
  /** The kind's name. */
  readonly label: string
}

/** Something that may be lost. */
interface Losable {
  readonly checkLost: () => LockLost | undefined
}

export type SpanAttributes = Readonly<Record<string, unknown>>

/** The label of the holding client. */
export const labelled = ({ options }: { readonly options: { readonly label: string } }) => ({
  "lock.client.label": options.label
})

const attributesOf = ({ label, name }: Traced) => ({ "lock.name": name, [kindAttribute]: label })

/** How an acquisition ended that acquired nothing without failing. */
const outcomeAttribute = "lock.outcome"

/** Wraps an acquisition in a span. A lock that was not free is not an error of the span but one of its attributes. */
export const traceAcquire = <A, E>(name: string, lock: Traced, self: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.flatten(
    Effect.useSpan(name, { attributes: attributesOf(lock) }, (span) =>
      Effect.flatMap(Effect.exit(Effect.withParentSpan(self, span)), (exit): Effect.Effect<Effect.Effect<A, E>, E> => {
        if (Exit.isFailure(exit) && !isTimeout(exit.cause)) return Effect.failCause(exit.cause)
        if (Exit.isFailure(exit)) span.attribute(outcomeAttribute, "timeout")
        else if (exit.value === undefined) span.attribute(outcomeAttribute, "unavailable")
        return Effect.succeed(exit)
      })
    )
  )

const isTimeout = ({ reasons }: Cause.Cause<unknown>): boolean =>
  reasons.length > 0 &&
  reasons.every((reason) => reason._tag === "Fail" && Predicate.isTagged(reason.error, "LockTimeout"))

/** Wraps what runs under a lock in a span, its release included. */
export const traceHold = <A, E, R>(
  name: string,
  lock: Traced,
  held: Losable,
  attributes: SpanAttributes,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.useSpan(name, { attributes: { ...attributesOf(lock), ...attributes } }, (span) =>
    Effect.ensuring(Effect.withParentSpan(self, span) as Effect.Effect<A, E, R>, noteLoss(span, held))
  )

/** Opens a span that ends with the scope, after the release. */
export const traceHoldUntilClosed = (
  name: string,
  lock: Traced,
  held: Losable,
  attributes: SpanAttributes,
  scope: Scope.Scope
): Effect.Effect<void> =>
  Effect.flatMap(
    Scope.provide(Effect.makeSpanScoped(name, { attributes: { ...attributesOf(lock), ...attributes } }), scope),
    (span) => Scope.addFinalizer(scope, noteLoss(span, held))
  )

const noteLoss = (span: Tracer.Span, held: Losable): Effect.Effect<void> =>
  Effect.sync(() => {
    const lost = held.checkLost()
    if (lost !== undefined && lost.reason !== "Released") span.attribute(lossAttribute, lost.reason)
  })
