import type * as Metric from "effect/Metric"

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

  get state(): Metric.HistogramState {
    let atMost = 0
    const buckets = this.#boundaries.map((boundary, i): [number, number] => [boundary, (atMost += this.#counts[i]!)])
    const [sum, min, max] = Array.from(this.#summary, (value) => value / this.#scale) as [number, number, number]
    return { buckets, count: this.#count, sum, ...(this.#count === 0 ? { min: 0, max: 0 } : { min, max }) }
  }
}
