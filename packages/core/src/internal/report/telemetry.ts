/**
 * Metrics, spans and log annotations. Attributes stay few: the kind of lock and the reason of a loss, never a name.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import type { LossReason } from "../../LockError.ts"
import { Histogram } from "./Histogram.ts"

/** A release is not a loss. */
export type Loss = Exclude<LossReason, "Released">

// 0.1 ms to 100 s
const boundaries = Metric.exponentialBoundaries({ start: 0.1, factor: Math.sqrt(10), count: 13 })

/**
 * The metrics of one kind of lock in one registry. Counters and histograms are plain numbers, read on export; looking up a
 * metric for every update would cost as much as the rest of an acquisition.
 */
class KindMetrics {
  acquired = 0
  timedOut = 0
  held = 0
  readonly lost: Record<Loss, number> = { Expired: 0, NotOwner: 0, RenewalFailed: 0, ClientClosed: 0 }
  readonly wait = new Histogram(boundaries)
  readonly hold = new Histogram(boundaries)

  constructor(kind: string, context: Context.Context<never>) {
    const attributes = { kind }
    const count = (id: string, description: string, get: () => number, reason?: Loss) =>
      Metric.registerUnsafe(
        Metric.counter(id, {
          description,
          incremental: true,
          attributes: reason === undefined ? attributes : { kind, reason }
        }),
        context,
        { get: () => ({ count: get(), incremental: true }), update: () => {}, modify: () => {} }
      )
    count("redis_lock_acquired", "Locks acquired, re-entries not counted", () => this.acquired)
    count("redis_lock_timed_out", "Acquisitions whose waitTime ran out", () => this.timedOut)
    for (const reason of Object.keys(this.lost) as ReadonlyArray<Loss>) {
      count("redis_lock_lost", "Locks lost while held", () => this.lost[reason], reason)
    }
    Metric.registerUnsafe(
      Metric.gauge("redis_lock_held", { description: "Locks held by this process now", attributes }),
      context,
      { get: () => ({ value: this.held }), update: () => {}, modify: () => {} }
    )
    const histogram = (id: string, description: string, values: Histogram) =>
      Metric.registerUnsafe(Metric.histogram(id, { description, boundaries, attributes }), context, {
        get: () => values.state,
        update: () => {},
        modify: () => {}
      })
    histogram("redis_lock_wait_millis", "From asking to holding, milliseconds", this.wait)
    histogram("redis_lock_hold_millis", "From holding to releasing, milliseconds", this.hold)
  }
}

/** The metrics of each registry, shared by its clients. */
const registries = new WeakMap<object, Map<string, KindMetrics>>()

/** A lock or semaphore whose metrics are counted by kind. */
interface Kinded {
  readonly kind: { readonly name: string }
}

export class Telemetry {
  readonly #context: Context.Context<never>
  readonly #kinds: Map<string, KindMetrics>

  constructor(context: Context.Context<never>) {
    const registry = Context.get(context, Metric.MetricRegistry)
    // only the two references that the registration of a metric looks up: the rest need not be kept
    this.#context = Context.make(Metric.MetricRegistry, registry).pipe(
      Context.add(Metric.CurrentMetricAttributes, Context.get(context, Metric.CurrentMetricAttributes))
    )
    this.#kinds = registries.get(registry) ?? new Map<string, KindMetrics>()
    registries.set(registry, this.#kinds)
  }

  #metrics(kind: string): KindMetrics {
    let metrics = this.#kinds.get(kind)
    if (metrics === undefined) this.#kinds.set(kind, (metrics = new KindMetrics(kind, this.#context)))
    return metrics
  }

  acquired(lease: Kinded, waitedMillis: number): void {
    const metrics = this.#metrics(lease.kind.name)
    metrics.acquired++
    metrics.held++
    metrics.wait.record(waitedMillis)
  }

  released(lease: Kinded, heldMillis: number): void {
    const metrics = this.#metrics(lease.kind.name)
    metrics.held--
    metrics.hold.record(heldMillis)
  }

  lost(lease: Kinded, reason: Loss): void {
    this.#metrics(lease.kind.name).lost[reason]++
  }

  timedOut(kind: string): void {
    this.#metrics(kind).timedOut++
  }
}

interface Traced {
  /** The lock's name. */
  readonly name: string
  /** The kind's name. */
  readonly label: string
}

const attributesOf = ({ label, name }: Traced) => ({ "lock.name": name, "lock.kind": label })

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
