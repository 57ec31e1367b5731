/**
 * Counts and measures what locks do. The numbers are plain fields, read on export: looking up a metric of Effect for every update would
 * cost as much as the rest of an acquisition. They are named by OpenTelemetry's conventions; docs/telemetry.md says what each means and
 * when to worry.
 *
 * Every attribute has few values. The name of a lock is never one: applications make a name for each order and each user, and every name
 * would be a time series that the registry keeps for as long as the process runs.
 */
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { LossReason, StoreReason } from "../../LockError.ts"
import { storeReasons } from "./storeReasons.ts"

/** The name and the unit of a metric: `s` is seconds, braces name what is counted. */
export interface MetricInfo {
  readonly name: string
  readonly unit: string
  readonly description: string
}

/** The kind of lock; see {@link KindMetrics}. */
export const kindAttribute = "lock.kind"

/** How a lock was lost. */
export const lossAttribute = "lock.loss.reason"

/** Why a command failed: OpenTelemetry's own name. */
export const errorAttribute = "error.type"

export const acquisitions: MetricInfo = {
  name: "redis_lock.acquisitions",
  unit: "{acquisition}",
  description: "Locks acquired, re-entries not counted"
}

export const timeouts: MetricInfo = {
  name: "redis_lock.timeouts",
  unit: "{timeout}",
  description: "Acquisitions whose waitTime ran out"
}

export const losses: MetricInfo = {
  name: "redis_lock.losses",
  unit: "{loss}",
  description: "Locks lost while held"
}

export const renewalFailures: MetricInfo = {
  name: "redis_lock.renewal.failures",
  unit: "{failure}",
  description: "Failed renewals of a lease, which are repeated until the lease ends"
}

export const handOvers: MetricInfo = {
  name: "redis_lock.handovers",
  unit: "{handover}",
  description: "Releases that woke the next waiter of the same process before Redis had replied"
}

export const polls: MetricInfo = {
  name: "redis_lock.polls",
  unit: "{poll}",
  description: "Wake-ups of waiters by the clock, without a message"
}

export const held: MetricInfo = {
  name: "redis_lock.held",
  unit: "{lock}",
  description: "Locks held by this process now"
}

export const waiting: MetricInfo = {
  name: "redis_lock.waiting",
  unit: "{acquisition}",
  description: "Acquisitions of this process that wait now"
}

export const waitDuration: MetricInfo = {
  name: "redis_lock.wait.duration",
  unit: "s",
  description: "Time from asking for a lock to holding it"
}

export const holdDuration: MetricInfo = {
  name: "redis_lock.hold.duration",
  unit: "s",
  description: "Time from holding a lock to its release or loss"
}

export const storeErrors: MetricInfo = {
  name: "redis_lock.store.errors",
  unit: "{error}",
  description: "Commands to Redis that failed"
}

/** From a fraction of a round trip to five minutes in a queue. */
export const waitBoundaries = Metric.boundariesFromIterable([
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300
])

/** From one round trip to an hour of work; 30 is the lease that the watchdog renews. */
export const holdBoundaries = Metric.boundariesFromIterable([
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600
])

/**
 * Counts values between ascending boundaries. Recording costs a few comparisons, whereas Effect's own histogram is looked
 * up in its registry for each value.
 */
export class Histogram {
  readonly #boundaries: ReadonlyArray<number>
  readonly #scale: number
  /** The boundaries in the unit of what is recorded. */
  readonly #limits: ReadonlyArray<number>
  /** For each boundary, how many values are at most that but above the one before it; at the end, how many are above all. */
  readonly #counts: Uint32Array
  /** The sum of all values, the least and the greatest. */
  readonly #summary = new Float64Array([0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
  #count = 0

  /** Recorded values are divided by `scale` on export only: dividing each one would allocate a number on the heap. */
  constructor(boundaries: ReadonlyArray<number>, scale = 1) {
    this.#boundaries = boundaries
    this.#scale = scale
    this.#limits = boundaries.map((boundary) => boundary * scale)
    this.#counts = new Uint32Array(boundaries.length + 1)
  }

  record(value: number): void {
    const limits = this.#limits
    const summary = this.#summary
    let bucket = 0
    while (bucket < limits.length && value > limits[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#count++
    summary[0]! += value
    if (value < summary[1]!) summary[1] = value
    if (value > summary[2]!) summary[2] = value
  }

  get count(): number {
    return this.#count
  }

  get state(): Metric.HistogramState {
    let atMost = 0
    const buckets = this.#boundaries.map((boundary, i): [number, number] => [boundary, (atMost += this.#counts[i]!)])
    const [sum, min, max] = Array.from(this.#summary, (value) => value / this.#scale) as [number, number, number]
    return { buckets, count: this.#count, sum, ...(this.#count === 0 ? { min: 0, max: 0 } : { min, max }) }
  }
}

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

  count({ description, name, unit }: MetricInfo, attributes: Attributes, get: () => number): void {
    const options = { description, incremental: true, attributes: { ...attributes, unit } }
    this.#register(Metric.counter(name, options), () => ({ count: get(), incremental: true }))
  }

  gauge({ description, name, unit }: MetricInfo, attributes: Attributes, get: () => number): void {
    const options = { description, attributes: { ...attributes, unit } }
    this.#register(Metric.gauge(name, options), () => ({ value: get() }))
  }

  /** A histogram of milliseconds, exported in seconds. */
  histogram(
    { description, name, unit }: MetricInfo,
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
  readonly lost: Record<Loss, number> = { Expired: 0, NotOwner: 0, RenewalFailed: 0, HeldTooLong: 0, ClientClosed: 0 }
  /** One entry for each acquisition. */
  readonly wait: Histogram
  /** One entry for each hold that has ended. */
  readonly hold: Histogram

  constructor(kind: string, registrar: Registrar) {
    const attributes = { [kindAttribute]: kind }
    registrar.count(acquisitions, attributes, () => this.wait.count)
    registrar.count(timeouts, attributes, () => this.timedOut)
    for (const reason of Object.keys(this.lost) as ReadonlyArray<Loss>) {
      registrar.count(losses, { ...attributes, [lossAttribute]: reason }, () => this.lost[reason])
    }
    registrar.count(renewalFailures, attributes, () => this.renewalFailures)
    registrar.count(handOvers, attributes, () => this.handOvers)
    registrar.count(polls, attributes, () => this.polls)
    registrar.gauge(held, attributes, () => this.wait.count - this.hold.count)
    registrar.gauge(waiting, attributes, () => this.waiting)
    this.wait = registrar.histogram(waitDuration, attributes, waitBoundaries)
    this.hold = registrar.histogram(holdDuration, attributes, holdBoundaries)
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
      this.#registrar.count(storeErrors, { [errorAttribute]: reason }, () => counts.get(reason)!)
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
