import { assert, it } from "@effect/vitest"
import * as Metric from "effect/Metric"
import { Histogram } from "../../packages/core/dist/internal/report/telemetry.js"
import { test } from "../kit/test.ts"

test("A histogram of ours says the same of any values as Effect's own", function* () {
  const boundaries = [0.1, 1, 10]
  const own = Metric.histogram("test_own_histogram", { boundaries })
  const ours = new Histogram(boundaries)
  for (const value of [0, 0.05, 0.1, 0.5, 1, 1.5, 9.99, 10, 11, 1000]) {
    yield* Metric.update(own, value)
    ours.record(value)
  }
  assert.deepStrictEqual(ours.state, yield* Metric.value(own))
})

test("A histogram of milliseconds is exported in seconds", function* () {
  const boundaries = [0.0025, 0.1, 1]
  const own = Metric.histogram("test_seconds", { boundaries })
  const ours = new Histogram(boundaries, 1000)
  for (const millis of [0, 1, 2.5, 3, 100, 101, 1000, 5000]) {
    yield* Metric.update(own, millis / 1000)
    ours.record(millis)
  }
  assert.deepStrictEqual(ours.state, { ...(yield* Metric.value(own)), sum: 6.2075 })
})

it("An empty histogram has no least and no greatest value beyond zero", () => {
  const { count, max, min, sum } = new Histogram([1]).state
  assert.deepStrictEqual({ count, max, min, sum }, { count: 0, max: 0, min: 0, sum: 0 })
})
