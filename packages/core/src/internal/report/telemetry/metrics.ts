/**
 * The metrics of the library, named by OpenTelemetry's conventions. docs/telemetry.md says what each means and when to worry.
 *
 * Every attribute has few values. The name of a lock is never one: applications make a name for each order and each user, and every name
 * would be a time series that the registry keeps for as long as the process runs.
 */
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
