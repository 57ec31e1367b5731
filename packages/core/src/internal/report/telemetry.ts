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

/** The kind of lock; see {@link KindMetrics}. */
export const kindAttribute = "lock.kind"

/** How a lock was lost. */
export const lossAttribute = "lock.loss.reason"

/** Why a command failed: OpenTelemetry's own name. */
const errorAttribute = "error.type"

/** From a fraction of a round trip to five minutes in a queue. */
const waitBoundaries = Metric.boundariesFromIterable([
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300
])

/** From one round trip to an hour of work; 30 is the lease that the watchdog renews. */
const holdBoundaries = Metric.boundariesFromIterable([
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

/**
 * The functions that register metrics with these attributes in the registry of the context, which reads them when they are exported.
 * The unit `s` is seconds; braces name what is counted.
 */
const registering = (context: Context.Context<never>, attributes: Attributes) => {
  const options = (unit: string, description: string) => ({ description, attributes: { ...attributes, unit } })
  const register = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State): void =>
    void Metric.registerUnsafe(metric, context, { get, update: () => {}, modify: () => {} })
  return {
    count: (name: string, unit: string, description: string, get: () => number): void =>
      register(Metric.counter(name, { ...options(unit, description), incremental: true }), () => ({
        count: get(),
        incremental: true
      })),
    gauge: (name: string, unit: string, description: string, get: () => number): void =>
      register(Metric.gauge(name, options(unit, description)), () => ({ value: get() })),
    /** Of milliseconds, exported in seconds. */
    histogram: (name: string, description: string, boundaries: ReadonlyArray<number>): Histogram => {
      const values = new Histogram(boundaries, 1000)
      register(Metric.histogram(name, { ...options("s", description), boundaries }), () => values.state)
      return values
    }
  }
}

type Registering = (attributes: Attributes) => ReturnType<typeof registering>

/** The metrics of one kind of lock in one registry. All of them start at zero, or a first loss would not look like a rise. */
class KindMetrics {
  timedOut = 0
  waiting = 0
  renewalFailures = 0
  handOvers = 0
  polls = 0
  /** Acquisitions of permits that this process does not hold. */
  #notHeld = 0
  readonly lost: Record<Loss, number> = { Expired: 0, NotOwner: 0, RenewalFailed: 0, HeldTooLong: 0, ClientClosed: 0 }
  /** One entry for each acquisition. */
  readonly waitDuration: Histogram
  /** One entry for each hold that has ended. */
  readonly holdDuration: Histogram

  constructor(kind: string, register: Registering) {
    const attributes = { [kindAttribute]: kind }
    const { count, gauge, histogram } = register(attributes)
    const acquired = "Locks acquired, re-entries not counted"
    count("redis_lock.acquisitions", "{acquisition}", acquired, () => this.waitDuration.count)
    count("redis_lock.timeouts", "{timeout}", "Acquisitions whose waitTime ran out", () => this.timedOut)
    for (const reason of Object.keys(this.lost) as ReadonlyArray<Loss>) {
      const { count } = register({ ...attributes, [lossAttribute]: reason })
      count("redis_lock.losses", "{loss}", "Locks lost while held", () => this.lost[reason])
    }
    const failures = "Failed renewals of a lease, which are repeated until the lease ends"
    count("redis_lock.renewal.failures", "{failure}", failures, () => this.renewalFailures)
    const handOvers = "Releases that woke the next waiter of the same process before Redis had replied"
    count("redis_lock.handovers", "{handover}", handOvers, () => this.handOvers)
    count("redis_lock.polls", "{poll}", "Wake-ups of waiters by the clock, without a message", () => this.polls)
    gauge("redis_lock.held", "{lock}", "Locks held by this process now", () => this.#heldNow)
    gauge("redis_lock.waiting", "{acquisition}", "Acquisitions of this process that wait now", () => this.waiting)
    const waited = "Time from asking for a lock to holding it"
    this.waitDuration = histogram("redis_lock.wait.duration", waited, waitBoundaries)
    const held = "Time from holding a lock to its release or loss"
    this.holdDuration = histogram("redis_lock.hold.duration", held, holdBoundaries)
  }

  get #heldNow(): number {
    return this.waitDuration.count - this.#notHeld - this.holdDuration.count
  }

  /** Counts an acquisition of permits that anybody may give back. */
  acquiredForAnybody(waitedMillis: number): void {
    this.#notHeld++
    this.waitDuration.record(waitedMillis)
  }
}

/** The metrics of one registry, shared by its clients and stores. */
class RegistryMetrics {
  readonly #register: Registering
  readonly #kinds = new Map<string, KindMetrics>()
  #storeErrors: Map<StoreReason, number> | undefined = undefined

  private constructor(registry: Context.Context<never>) {
    this.#register = (attributes) => registering(registry, attributes)
  }

  static of(context: Context.Context<never>): RegistryMetrics {
    const registry = Context.get(context, Metric.MetricRegistry)
    let found = registries.get(registry)
    if (found === undefined) {
      // only the two references that the registration of a metric looks up: the rest need not be kept
      const kept = Context.make(Metric.MetricRegistry, registry).pipe(
        Context.add(Metric.CurrentMetricAttributes, Context.get(context, Metric.CurrentMetricAttributes))
      )
      registries.set(registry, (found = new RegistryMetrics(kept)))
    }
    return found
  }

  kind(kind: string): KindMetrics {
    let found = this.#kinds.get(kind)
    if (found === undefined) this.#kinds.set(kind, (found = new KindMetrics(kind, this.#register)))
    return found
  }

  get storeErrors(): Map<StoreReason, number> {
    if (this.#storeErrors !== undefined) return this.#storeErrors
    const counts = (this.#storeErrors = new Map<StoreReason, number>())
    for (const reason of Object.keys(storeReasons) as ReadonlyArray<StoreReason>) {
      counts.set(reason, 0)
      const { count } = this.#register({ [errorAttribute]: reason })
      count("redis_lock.store.errors", "{error}", "Commands to Redis that failed", () => counts.get(reason)!)
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

/** What one client reports of its locks. */
export class Telemetry {
  readonly #registry: RegistryMetrics
  readonly #isQuorum: boolean
  /** By the names that {@link of} is given. */
  readonly #kinds = new Map<string, KindMetrics>()

  constructor(context: Context.Context<never>, isQuorum: boolean) {
    this.#registry = RegistryMetrics.of(context)
    this.#isQuorum = isQuorum
  }

  /** The metrics of a kind: the name of a lock's protocol, or of another kind of lock or semaphore. */
  of(kind: string): KindMetrics {
    let found = this.#kinds.get(kind)
    if (found === undefined) this.#kinds.set(kind, (found = this.#registry.kind(kindOn(this.#isQuorum, kind))))
    return found
  }
}

/** Counts the commands that fail in the stores of a registry. */
export const storeErrorsIn = (context: Context.Context<never>): ((reason: StoreReason) => void) => {
  const counts = RegistryMetrics.of(context).storeErrors
  return (reason) => void counts.set(reason, counts.get(reason)! + 1)
}
