/**
 * Counts and measures what locks do. The numbers are plain fields, read on export: looking up a metric of Effect for every update would
 * cost as much as the rest of an acquisition.
 */
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { LossReason, StoreReason } from "../../LockError.ts"
import * as metrics from "./metrics.ts"
import { Histogram } from "./metrics.ts"
import { storeReasons } from "./storeReasons.ts"

/** A release is not a loss. */
export type Loss = Exclude<LossReason, "Released">

type Attributes = Readonly<Record<string, string>>

/** Registers metrics in one registry, which reads them when they are exported. */
class Registrar {
  readonly #context: Context.Context<never>

  constructor(context: Context.Context<never>) {
    // only the two references that the registration of a metric looks up: the rest need not be kept
    this.#context = Context.make(Metric.MetricRegistry, Context.get(context, Metric.MetricRegistry)).pipe(
      Context.add(Metric.CurrentMetricAttributes, Context.get(context, Metric.CurrentMetricAttributes))
    )
  }

  count({ description, name, unit }: metrics.MetricInfo, attributes: Attributes, get: () => number): void {
    const options = { description, incremental: true, attributes: { ...attributes, unit } }
    this.#register(Metric.counter(name, options), () => ({ count: get(), incremental: true }))
  }

  gauge({ description, name, unit }: metrics.MetricInfo, attributes: Attributes, get: () => number): void {
    const options = { description, attributes: { ...attributes, unit } }
    this.#register(Metric.gauge(name, options), () => ({ value: get() }))
  }

  /** A histogram of milliseconds, exported in seconds. */
  histogram(
    { description, name, unit }: metrics.MetricInfo,
    attributes: Attributes,
    boundaries: ReadonlyArray<number>
  ): Histogram {
    const values = new Histogram(boundaries, 1000)
    const options = { description, boundaries, attributes: { ...attributes, unit } }
    this.#register(Metric.histogram(name, options), () => values.state)
    return values
  }

  #register<Input, State>(metric: Metric.Metric<Input, State>, get: () => State): void {
    Metric.registerUnsafe(metric, this.#context, { get, update: () => {}, modify: () => {} })
  }
}

/** The metrics of one kind of lock in one registry. All of them start at zero, or a first loss would not look like a rise. */
class KindMetrics {
  timedOut = 0
  waiting = 0
  renewalFailures = 0
  handOvers = 0
  polls = 0
  readonly lost: Record<Loss, number> = { Expired: 0, NotOwner: 0, RenewalFailed: 0, ClientClosed: 0 }
  /** One entry for each acquisition. */
  readonly wait: Histogram
  /** One entry for each hold that has ended. */
  readonly hold: Histogram

  constructor(kind: string, registrar: Registrar) {
    const attributes = { [metrics.kindAttribute]: kind }
    registrar.count(metrics.acquisitions, attributes, () => this.wait.count)
    registrar.count(metrics.timeouts, attributes, () => this.timedOut)
    for (const reason of Object.keys(this.lost) as ReadonlyArray<Loss>) {
      registrar.count(metrics.losses, { ...attributes, [metrics.lossAttribute]: reason }, () => this.lost[reason])
    }
    registrar.count(metrics.renewalFailures, attributes, () => this.renewalFailures)
    registrar.count(metrics.handOvers, attributes, () => this.handOvers)
    registrar.count(metrics.polls, attributes, () => this.polls)
    registrar.gauge(metrics.held, attributes, () => this.wait.count - this.hold.count)
    registrar.gauge(metrics.waiting, attributes, () => this.waiting)
    this.wait = registrar.histogram(metrics.waitDuration, attributes, metrics.waitBoundaries)
    this.hold = registrar.histogram(metrics.holdDuration, attributes, metrics.holdBoundaries)
  }
}

/** The metrics of one registry, shared by its clients and stores. */
class RegistryMetrics {
  readonly #registrar: Registrar
  readonly #kinds = new Map<string, KindMetrics>()
  #storeErrors: Map<StoreReason, number> | undefined = undefined

  private constructor(context: Context.Context<never>) {
    this.#registrar = new Registrar(context)
  }

  static of(context: Context.Context<never>): RegistryMetrics {
    const registry = Context.get(context, Metric.MetricRegistry)
    let found = registries.get(registry)
    if (found === undefined) registries.set(registry, (found = new RegistryMetrics(context)))
    return found
  }

  kind(kind: string): KindMetrics {
    let found = this.#kinds.get(kind)
    if (found === undefined) this.#kinds.set(kind, (found = new KindMetrics(kind, this.#registrar)))
    return found
  }

  get storeErrors(): Map<StoreReason, number> {
    if (this.#storeErrors !== undefined) return this.#storeErrors
    const counts = (this.#storeErrors = new Map<StoreReason, number>())
    for (const reason of Object.keys(storeReasons) as ReadonlyArray<StoreReason>) {
      counts.set(reason, 0)
      this.#registrar.count(metrics.storeErrors, { [metrics.errorAttribute]: reason }, () => counts.get(reason)!)
    }
    return counts
  }
}

const registries = new WeakMap<object, RegistryMetrics>()

/** The kinds of lock that a quorum keeps, whichever kind its members are. */
const quorumKinds: ReadonlyMap<string, string> = new Map([
  ["reentrant", "red"],
  ["fenced", "red"],
  ["spin", "red"],
  ["non_reentrant", "red"],
  ["read", "red_read"],
  ["write", "red_write"]
])

/** The kind by which a lock is counted and traced, by the name of its protocol. */
export const kindOn = (isQuorum: boolean, kind: string): string => (isQuorum && quorumKinds.get(kind)) || kind

/** What one client reports of its locks; `kind` is the name of a lock's protocol, or of another kind of lock or semaphore. */
export class Telemetry {
  readonly #registry: RegistryMetrics
  readonly #isQuorum: boolean
  readonly #kinds = new Map<string, KindMetrics>()

  constructor(context: Context.Context<never>, isQuorum: boolean) {
    this.#registry = RegistryMetrics.of(context)
    this.#isQuorum = isQuorum
  }

  #metrics(kind: string): KindMetrics {
    let found = this.#kinds.get(kind)
    if (found === undefined) this.#kinds.set(kind, (found = this.#registry.kind(kindOn(this.#isQuorum, kind))))
    return found
  }

  /** A lock is acquired, and held from now on. */
  acquired(kind: string, waitedMillis: number): void {
    const metrics = this.#kinds.get(kind) ?? this.#metrics(kind)
    metrics.wait.record(waitedMillis)
  }

  /** Its end, be it a release or a loss. */
  released(kind: string, heldMillis: number): void {
    const metrics = this.#kinds.get(kind) ?? this.#metrics(kind)
    metrics.hold.record(heldMillis)
  }

  lost(kind: string, reason: Loss): void {
    this.#metrics(kind).lost[reason]++
  }

  timedOut(kind: string): void {
    this.#metrics(kind).timedOut++
  }

  /** An acquisition begins to wait. */
  waits(kind: string): void {
    this.#metrics(kind).waiting++
  }

  /** It no longer waits, for whatever reason. */
  waited(kind: string): void {
    this.#metrics(kind).waiting--
  }

  renewalFailed(kind: string): void {
    this.#metrics(kind).renewalFailures++
  }

  handedOver(kind: string): void {
    this.#metrics(kind).handOvers++
  }

  polled(kind: string): void {
    this.#metrics(kind).polls++
  }
}

/** Counts the commands that fail in the stores of a registry. */
export const storeErrorsIn = (context: Context.Context<never>): ((reason: StoreReason) => void) => {
  const counts = RegistryMetrics.of(context).storeErrors
  return (reason) => void counts.set(reason, counts.get(reason)! + 1)
}
