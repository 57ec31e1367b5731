import type * as Metric from "effect/Metric"

/**
 * Counts values between ascending boundaries. Recording costs a few comparisons, whereas Effect's own histogram is looked
 * up in its registry for every value.
 */
export class Histogram {
  readonly #boundaries: ReadonlyArray<number>
  /** For each boundary, how many values are at most that but above the one before it; at the end, how many are above all. */
  readonly #counts: Uint32Array
  /** The sum of all values, the least and the greatest. */
  readonly #summary = new Float64Array([0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
  #count = 0

  constructor(boundaries: ReadonlyArray<number>) {
    this.#boundaries = boundaries
    this.#counts = new Uint32Array(boundaries.length + 1)
  }

  record(value: number): void {
    const boundaries = this.#boundaries
    const summary = this.#summary
    let bucket = 0
    while (bucket < boundaries.length && value > boundaries[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#count++
    summary[0]! += value
    if (value < summary[1]!) summary[1] = value
    if (value > summary[2]!) summary[2] = value
  }

  get state(): Metric.HistogramState {
    let atMost = 0
    const buckets = this.#boundaries.map((boundary, i): [number, number] => [boundary, (atMost += this.#counts[i]!)])
    const [sum, min, max] = this.#summary as unknown as readonly [number, number, number]
    return { buckets, count: this.#count, sum, ...(this.#count === 0 ? { min: 0, max: 0 } : { min, max }) }
  }
}
