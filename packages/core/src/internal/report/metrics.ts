/**
 * The metrics of the library, named by OpenTelemetry's conventions. docs/telemetry.md says what each means and when to worry.
 *
 * Every attribute has few values. The name of a lock is never one: applications make a name for each order and each user, and every name
 * would be a time series that the registry keeps for as long as the process runs.
 */
import * as Duration from "effect/Duration"
import * as Metric from "effect/Metric"

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

/** The text of a duration in messages. */
export const seconds = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  return millis < 1000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`
}
