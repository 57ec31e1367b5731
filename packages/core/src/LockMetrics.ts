/**
 * The metrics of the library, kept up to date in Effect's registry. `docs/telemetry.md` describes each of them.
 *
 * @since 0.3.0
 */
const gauges: ReadonlySet<string> = new Set(["redis_lock.held", "redis_lock.waiting"])

/**
 * The Prometheus name of a metric of this library, with its unit and `_total`, as written by the OpenTelemetry Collector and by
 * Prometheus when it receives OTLP. Names of other metrics stay as they are.
 *
 * **When to use**
 *
 * As the `metricNameMapper` of Effect's `PrometheusMetrics`, which does not add these suffixes by itself. The dashboard and the alerts of
 * this library need them.
 *
 * @example
 * ```ts
 * import { LockMetrics } from "effect-redis-lock"
 * import { PrometheusMetrics } from "effect/observability"
 *
 * LockMetrics.prometheusName("redis_lock.wait.duration") // "redis_lock_wait_duration_seconds"
 *
 * const page = PrometheusMetrics.format({ metricNameMapper: LockMetrics.prometheusName })
 * ```
 *
 * @category formatting
 * @since 0.3.0
 */
export const prometheusName = (name: string): string => {
  if (!name.startsWith("redis_lock.")) return name
  const suffix = name.endsWith(".duration") ? "_seconds" : gauges.has(name) ? "" : "_total"
  return name.replaceAll(".", "_") + suffix
}
