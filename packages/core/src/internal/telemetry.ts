/**
 * Metrics, spans and log annotations. Attributes stay few: the kind of lock and the reason of a loss, never a name.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import type { LossReason } from "../LockError.ts"
import type { LockKind } from "./LockKind.ts"
import type { Possession } from "./Possession.ts"

// 0.1 ms to 100 s
const boundaries = Metric.exponentialBoundaries({ start: 0.1, factor: Math.sqrt(10), count: 13 })

const metricsOf = (kind: string) => {
  const attributes = { kind }
  return {
    acquired: Metric.withAttributes(
      Metric.counter("redis_lock_acquired", {
        description: "Locks acquired, re-entries not counted",
        incremental: true
      }),
      attributes
    ),
    timedOut: Metric.withAttributes(
      Metric.counter("redis_lock_timed_out", { description: "Acquisitions whose waitTime ran out", incremental: true }),
      attributes
    ),
    lost: (reason: LossReason) =>
      Metric.withAttributes(
        Metric.counter("redis_lock_lost", { description: "Locks lost while held", incremental: true }),
        { kind, reason }
      ),
    held: Metric.withAttributes(
      Metric.gauge("redis_lock_held", { description: "Locks held by this process now" }),
      attributes
    ),
    wait: Metric.withAttributes(
      Metric.histogram("redis_lock_wait_millis", { description: "From asking to holding, milliseconds", boundaries }),
      attributes
    ),
    hold: Metric.withAttributes(
      Metric.histogram("redis_lock_hold_millis", {
        description: "From holding to releasing, milliseconds",
        boundaries
      }),
      attributes
    )
  }
}

type Metrics = ReturnType<typeof metricsOf>

export class Telemetry {
  readonly #context: Context.Context<never>
  readonly #kinds = new Map<string, Metrics>()

  constructor(context: Context.Context<never>) {
    this.#context = context
  }

  #metrics(kind: string): Metrics {
    let metrics = this.#kinds.get(kind)
    if (metrics === undefined) this.#kinds.set(kind, (metrics = metricsOf(kind)))
    return metrics
  }

  acquired(possession: Possession, waitedMillis: number): void {
    const metrics = this.#metrics(possession.kind.name)
    metrics.acquired.updateUnsafe(1, this.#context)
    metrics.wait.updateUnsafe(waitedMillis, this.#context)
    metrics.held.modifyUnsafe(1, this.#context)
  }

  released(possession: Possession, heldMillis: number): void {
    const metrics = this.#metrics(possession.kind.name)
    metrics.hold.updateUnsafe(heldMillis, this.#context)
    metrics.held.modifyUnsafe(-1, this.#context)
  }

  lost(possession: Possession, reason: LossReason): void {
    this.#metrics(possession.kind.name).lost(reason).updateUnsafe(1, this.#context)
  }

  timedOut(kind: string): void {
    this.#metrics(kind).timedOut.updateUnsafe(1, this.#context)
  }
}

interface Traced {
  readonly name: string
  readonly kind: LockKind
}

const attributesOf = ({ kind, name }: Traced) => ({ "lock.name": name, "lock.kind": kind.name })

/**
 * Wraps an effect in a span, but only for a caller that traces: without one a span would cost more than the lock.
 */
export const traced = <A, E, R>(
  fiber: Fiber<unknown, unknown>,
  span: string,
  lock: Traced,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  fiber.cache.span === undefined
    ? self
    : (Effect.withSpan(self, span, { attributes: attributesOf(lock) }) as Effect.Effect<A, E, R>)

/**
 * Opens a span that ends with the scope, for a caller that traces.
 */
export const tracedUntilClosed = (
  fiber: Fiber<unknown, unknown>,
  span: string,
  lock: Traced,
  scope: Scope.Scope
): Effect.Effect<void> =>
  fiber.cache.span === undefined
    ? Effect.void
    : Scope.provide(Effect.asVoid(Effect.makeSpanScoped(span, { attributes: attributesOf(lock) })), scope)
