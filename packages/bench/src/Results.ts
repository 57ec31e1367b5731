import { isLibrary } from "./candidates/catalog.ts"
import { median } from "./statistics.ts"
import type { Column, Sample, Target, Workload } from "./Workload.ts"

/** One candidate's row in the table of a workload. */
export interface Row {
  readonly candidate: string
  /** Medians over the rounds. */
  readonly figures: Sample
  /** Medians of the ratios to the reference of the same round. */
  readonly ratios: Sample
}

export interface Verdict {
  readonly target: Target
  readonly value: number
  readonly met: boolean
}

/** One figure of two candidates, compared. */
export interface Duel {
  readonly column: Column
  readonly value: number
  readonly other: number
  readonly ratio: number
  readonly outcome: "ahead" | "level" | "behind"
}

/** Figures that differ by a smaller share than this are level. */
const levelWithin = 0.01

/**
 * The figures of all rounds.
 */
export class Results {
  /** By workload, candidate, round. */
  readonly #samples = new Map<string, Map<string, Map<number, Sample>>>()
  readonly #leftOut = new Map<string, Map<string, string>>()

  add(workload: string, candidate: string, round: number, sample: Sample): void {
    const byCandidate = inMap(this.#samples, workload, () => new Map<string, Map<number, Sample>>())
    inMap(byCandidate, candidate, () => new Map<number, Sample>()).set(round, sample)
  }

  leaveOut(workload: string, candidate: string, reason: string): void {
    inMap(this.#leftOut, workload, () => new Map<string, string>()).set(candidate, reason)
    this.#samples.get(workload)?.delete(candidate)
  }

  isLeftOut(workload: string, candidate: string): boolean {
    return this.#leftOut.get(workload)?.has(candidate) === true
  }

  /** The candidates that could not be measured, and why. */
  leftOut(workload: string): ReadonlyArray<readonly [candidate: string, reason: string]> {
    return [...(this.#leftOut.get(workload) ?? [])]
  }

  rows(workload: Workload): ReadonlyArray<Row> {
    const { reference } = workload
    return [...(this.#samples.get(workload.id)?.keys() ?? [])].map((candidate) => ({
      candidate,
      figures: this.#figures(workload, candidate),
      ratios: reference === undefined ? {} : this.ratios(workload, candidate, reference)
    }))
  }

  /** Medians of the ratios of one candidate to another, over the rounds in which both ran. */
  ratios(workload: Workload, candidate: string, reference: string): Sample {
    const others = this.#rounds(workload, reference)
    const byMetric = new Map<string, Array<number>>()
    for (const [round, sample] of this.#rounds(workload, candidate)) {
      const other = others.get(round)
      if (other === undefined) continue
      for (const [metric, value] of Object.entries(sample)) {
        inMap(byMetric, metric, () => []).push(value / other[metric]!)
      }
    }
    return Object.fromEntries([...byMetric].map(([metric, ratios]) => [metric, median(ratios)]))
  }

  verdicts(workload: Workload, candidate: string): ReadonlyArray<Verdict> {
    const row = this.rows(workload).find((row) => row.candidate === candidate)
    if (row === undefined) return []
    return workload.targets.flatMap((target) => {
      const value =
        target.of === "best"
          ? this.#toBest(workload, candidate, target.metric)
          : (target.of === "ratio" ? row.ratios : row.figures)[target.metric]
      return value === undefined ? [] : [{ target, value, met: target.met(value) }]
    })
  }

  /** The ratio of a figure to that of the best other library. */
  #toBest(workload: Workload, candidate: string, metric: string): number | undefined {
    const others = this.rows(workload).filter((row) => row.candidate !== candidate && isLibrary(row.candidate))
    if (others.length === 0) return undefined
    const ratios = others.map((row) => this.ratios(workload, candidate, row.candidate)[metric]!)
    const isLower = workload.columns.find((column) => column.metric === metric)!.better === "lower"
    return isLower ? Math.max(...ratios) : Math.min(...ratios)
  }

  /** Compares two candidates in every figure of which lower or higher is better. */
  duels(workload: Workload, candidate: string, other: string): ReadonlyArray<Duel> {
    const rows = this.rows(workload)
    const own = rows.find((row) => row.candidate === candidate)?.figures
    const others = rows.find((row) => row.candidate === other)?.figures
    if (own === undefined || others === undefined) return []
    const ratios = this.ratios(workload, candidate, other)
    return workload.columns.flatMap((column) => {
      if (column.better === undefined) return []
      const value = own[column.metric]!
      const otherValue = others[column.metric]!
      const ratio = value === otherValue ? 1 : ratios[column.metric]!
      const advantage = column.better === "lower" ? 1 - ratio : ratio - 1
      const outcome = Math.abs(advantage) < levelWithin ? "level" : advantage > 0 ? "ahead" : "behind"
      return [{ column, value, other: otherValue, ratio, outcome }]
    })
  }

  #rounds(workload: Workload, candidate: string): ReadonlyMap<number, Sample> {
    return this.#samples.get(workload.id)?.get(candidate) ?? new Map()
  }

  #figures(workload: Workload, candidate: string): Sample {
    const samples = [...this.#rounds(workload, candidate).values()]
    const metrics = Object.keys(samples[0] ?? {})
    return Object.fromEntries(metrics.map((metric) => [metric, median(samples.map((sample) => sample[metric]!))]))
  }

  toJSON(): unknown {
    const plain = (value: unknown): unknown =>
      value instanceof Map ? Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)])) : value
    return { samples: plain(this.#samples), leftOut: plain(this.#leftOut) }
  }
}

/** The value of a key in a map, made if it is missing. */
const inMap = <V>(map: Map<string, V>, key: string, make: () => V): V => {
  let value = map.get(key)
  if (value === undefined) map.set(key, (value = make()))
  return value
}
