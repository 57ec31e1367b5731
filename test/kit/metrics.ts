import { Effect, Metric } from "effect"

/** Keeps metrics apart from those of other tests. */
export const withOwnMetrics = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(self, Metric.MetricRegistry, new Map()))

/** Counts of counters and histograms and values of gauges, by name and attributes but for the unit. */
export const metricValues = Effect.map(Metric.snapshot, (metrics) =>
  Object.fromEntries(
    metrics.map(({ attributes, id, state }) => [
      [
        id,
        ...Object.entries(attributes ?? {})
          .filter(([key]) => key !== "unit")
          .map(([key, value]) => `${key}=${value}`)
      ].join(" "),
      "count" in state ? Number(state.count) : Number((state as { value: number }).value)
    ])
  )
)

/** {@link metricValues} that are not zero. */
export const metricsAboveZero = Effect.map(metricValues, (values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== 0))
)
